// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// lineages are the tables of the corpus whose history is shown in golden files.
var lineages = []struct {
	name, table string
	args        []string
}{
	{"events", "events", nil},
	{"rest_only", "rest_only", nil},                                               // the chain is in no metadata file
	{"rest_multi", "rest_multi", nil},                                             // a hidden snapshot
	{"rest_branch", "rest_branch", nil},                                           // a merge
	{"branches_both", "branches_both", nil},                                       // a forced merge: snapshots left behind
	{"rolled_back", "rolled_back", nil},                                           // goes back
	{"reset", "reset", []string{"--ref", "r1", "--also", "r1_before"}},            // two lines of one branch
	{"expired", "expired", nil},                                                   // ends in a hole
	{"replaced", "replaced", nil},                                                 // begins anew
	{"renamed", "renamed", nil},                                                   // two names
	{"recreated", "recreated", nil},                                               // another table under the name
	{"empty", "empty", nil},                                                       // no snapshot
	{"mor", "mor", nil},                                                           // delete files
	{"mor_manifests", "mor", []string{"--manifests"}},                             // the same, counted
	{"cut", "many", []string{"--limit", "3"}},                                     // the newest only
	{"tagged", "tagged", []string{"--ref", "tag1", "--also", "main"}},             // older than what is beside
	{"transplanted", "transplanted", nil},                                         // the same files under new commits
	{"evolve", "evolve", nil},                                                     // commits without rows
	{"at_a_commit", "rest_multi", []string{"--ref", "@" + commitBeforeTheLast()}}, // no branch
}

func commitBeforeTheLast() string {
	e, err := corpus.Load("rest_multi")
	if err != nil || len(e.Commits) < 2 {
		return "unknown"
	}
	return e.Commits[len(e.Commits)-2].Hash
}

func TestLineageOfRealTables(t *testing.T) {
	for _, l := range lineages {
		t.Run(l.name, func(t *testing.T) {
			got := onCorpus(t, "lineage", l.table, l.args...)
			require.Equal(t, 0, got.code, got.all())
			golden(t, "lineage/"+l.name+".txt", got.stdout)
		})
	}
}

func TestLineageAsJSONNamesWhatTheCorpusHolds(t *testing.T) {
	for _, name := range []string{"events", "rest_only", "rest_branch", "rest_multi", "many", "mor", "wap", "v1"} {
		t.Run(name, func(t *testing.T) {
			e, err := corpus.Load(name)
			require.NoError(t, err)
			got := onCorpus(t, "lineage", e.Table, "--json", "--limit", "0")
			require.Equal(t, 0, got.code, got.all())
			var g struct {
				Rows []struct {
					ID       string
					Snapshot *struct {
						ID     string `json:"snapshot_id"`
						Line   string
						Counts struct {
							Added *int64 `json:"added_rows"`
						}
					}
				}
				End struct{ Kind string }
			}
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &g))
			assert.Equal(t, "root", g.End.Kind)
			on := map[string]bool{}
			commits := map[string]bool{}
			for _, r := range g.Rows {
				commits[r.ID] = true
				if r.Snapshot != nil && r.Snapshot.Line == "ancestor" {
					on[r.Snapshot.ID] = true
				}
			}
			for _, c := range e.Commits {
				assert.True(t, commits[c.Hash], "commit %s", c.Hash)
			}
			for _, id := range e.HeadChain {
				assert.True(t, on[fmt.Sprint(id)], "snapshot %d", id)
			}
		})
	}
}

func TestLineagePicturesAreWholeAndLoadNothing(t *testing.T) {
	for _, l := range lineages {
		if !slices.Contains([]string{"rest_branch", "reset", "rest_multi", "expired"}, l.name) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			svg := onCorpus(t, "lineage", l.table, append([]string{"--svg", "-"}, l.args...)...)
			require.Equal(t, 0, svg.code, svg.all())
			wellFormed(t, svg.stdout)
			golden(t, "lineage/"+l.name+".svg", svg.stdout)

			page := onCorpus(t, "lineage", l.table, append([]string{"--html", "-"}, l.args...)...)
			require.Equal(t, 0, page.code, page.all())
			for _, foreign := range []string{"src=", "href=", "@import", "url(", "<script", "http:", "https:"} {
				assert.NotContains(t, page.stdout, foreign)
			}
			golden(t, "lineage/"+l.name+".html", page.stdout)
		})
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func TestPagesEscapeWhatWritersChose(t *testing.T) {
	g := &graph{Table: `a.<script>alert(1)</script>`, Reference: "main", lanes: 1, Rows: []*row{{Kind: rowCommit, ID: "abc", Message: `<img src=x onerror=alert(1)>`}}}
	for name, write := range map[string]func(io.Writer) error{"svg": g.writeSVG, "html": g.writeHTML} {
		var b strings.Builder
		require.NoError(t, write(&b))
		assert.NotContains(t, b.String(), "<script", name)
		assert.NotContains(t, b.String(), "<img", name)
	}
}

func TestNothingThatWritersChoseSteersATerminal(t *testing.T) {
	g := &graph{Table: "a.b", Reference: "main", lanes: 1, Rows: []*row{{
		Kind: rowCommit, ID: "abc", Message: "red \x1b[31m bell \a csi \u009b31m back \u202e end\nmore", Notes: []string{"see s3://bucket/\x1b]0;title\a"},
	}}}
	for name, write := range map[string]func(io.Writer) error{"text": func(w io.Writer) error { return g.print(w, false) }, "svg": g.writeSVG, "html": g.writeHTML} {
		var b strings.Builder
		require.NoError(t, write(&b))
		assert.NotContains(t, b.String(), "\x1b[31m bell", name)
		assert.Contains(t, b.String(), "red ␛[31m bell ␇ csi �31m back � end", name)
		if name != "html" {
			assert.Contains(t, b.String(), "see s3://bucket/␛]0;title␇", name)
		}
		if name == "svg" {
			wellFormed(t, b.String())
		}
	}
}

func TestPicturesClipNothing(t *testing.T) {
	path := "s3://bucket/" + strings.Repeat("folder/", 60) + "snap.avro"
	g := &graph{
		Table: "a." + strings.Repeat("long", 40), Reference: "main", lanes: 70,
		Rows:       []*row{{Kind: rowCommit, ID: "abc", Message: path, Notes: []string{"see " + path}}},
		End:        end{Kind: endHole, Why: "reading manifest list " + path + ": it is gone"},
		Checkpoint: &mark{Position: path},
	}
	for _, lanes := range []int{1, 70} {
		g.lanes = lanes
		var b strings.Builder
		require.NoError(t, g.writeSVG(&b))
		var picture struct {
			Width int `xml:"width,attr"`
			Text  []struct {
				Class string `xml:"class,attr"`
				X     int    `xml:"x,attr"`
				Line  string `xml:",chardata"`
			} `xml:"text"`
		}
		require.NoError(t, xml.Unmarshal([]byte(b.String()), &picture))
		shown := map[string]string{}
		for _, line := range picture.Text {
			wide := 8
			if line.Class == "title" {
				wide = 11
			}
			assert.LessOrEqual(t, line.X+wide*utf8.RuneCountInString(line.Line), picture.Width, line.Line)
			shown[line.Class] += strings.TrimPrefix(line.Line, "  ")
		}
		for _, class := range []string{"soft", "note", "hole"} {
			assert.Contains(t, shown[class], path, "%s, %d lanes", class, lanes)
		}
	}
}

func TestACheckpointKeepsTheShapeOfItsRow(t *testing.T) {
	r := &row{Snapshot: &snapshot{Line: lineAbandoned}, Checkpoint: true}
	assert.Contains(t, r.node(), `class="node abandoned checkpoint"`)
	assert.Contains(t, r.node(), "l 6 6 m 0 -6 l -6 6", "crossed out")
	before, after, found := strings.Cut(pictureStyle, ".node.checkpoint { fill: var(--good); }")
	require.True(t, found)
	assert.NotContains(t, before, ".node.abandoned {", "whose fill comes later, and wins")
	assert.Contains(t, after, ".node.checkpoint { stroke: var(--good); }")
}

func TestLineageShowsTheCheckpoint(t *testing.T) {
	p := newCorpusPipeline(t, "reset", "branch: r1_before", "checkpoint_cache_key: shared")
	set := p.on("checkpoint set", "--yes", "4640528470792844666")
	require.NotEqual(t, 0, set.code, "it is a snapshot of the other line")

	set = p.on("checkpoint set", "--yes", "5567208553694355187")
	require.Equal(t, 0, set.code, set.all())
	got := p.on("lineage")
	require.Equal(t, 0, got.code, got.all())
	golden(t, "lineage/checkpoint_on_the_line.txt", got.stdout)

	// The same checkpoint, after the branch went elsewhere.
	p.path = p.write("reset", "branch: r1", "checkpoint_cache_key: shared")
	got = p.on("lineage")
	require.Equal(t, 0, got.code, got.all())
	golden(t, "lineage/checkpoint_left_behind.txt", got.stdout)
	page := p.on("lineage", "--html", "-")
	golden(t, "lineage/checkpoint_left_behind.html", page.stdout)
}

func TestEveryEdgeOfAGraphIsDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "rows")
		rows := make([]*row, n)
		for i := range rows {
			rows[i] = &row{Kind: rowCommit, ID: fmt.Sprint(i), Time: moment(n - i)}
			for range rapid.IntRange(0, 2).Draw(t, "parents") {
				if i+1 == n {
					break
				}
				parent := fmt.Sprint(rapid.IntRange(i+1, n-1).Draw(t, "parent"))
				if !slices.Contains(rows[i].Parents, parent) {
					rows[i].Parents = append(rows[i].Parents, parent)
				}
			}
		}
		rows = inOrder(rows)
		require.Len(t, rows, n)
		lanes := assignLanes(rows)
		checkLanes(t, rows, lanes)
	})
}

// checkLanes follows every line from a row down and sees that it arrives at the parent.
func checkLanes(t *rapid.T, rows []*row, lanes int) {
	enters := func(r *row, lane int) bool {
		return (lane == r.lane.at && r.lane.above) || slices.Contains(r.lane.joins, lane) || slices.Contains(r.lane.through, lane)
	}
	for i, r := range rows {
		require.Less(t, r.lane.at, lanes)
		out := append([]int{}, r.lane.opens...)
		if r.lane.below {
			out = append([]int{r.lane.at}, out...)
		}
		require.Len(t, out, len(r.Parents))
		for j, lane := range out {
			at := i + 1
			for ; at < len(rows) && slices.Contains(rows[at].lane.through, lane); at++ {
				require.True(t, enters(rows[at], lane))
			}
			require.Less(t, at, len(rows), "the line to %s ends nowhere", r.Parents[j])
			require.Equal(t, r.Parents[j], rows[at].ID)
			require.True(t, enters(rows[at], lane))
		}
	}
}
