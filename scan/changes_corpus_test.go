// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/tests/corpus"
)

// messagesRead are a step's message bodies by what they do to the table.
type messagesRead struct {
	inserted, deleted [][]byte
	operations        []string
	bodies            [][]byte
}

func readChanges(t testing.TB, plan *ChangePlan, opts ReadOptions) (messagesRead, error) {
	t.Helper()
	var m messagesRead
	var last bool
	for b, err := range plan.Read(t.Context(), opts) {
		if err != nil {
			return m, err
		}
		require.False(t, last, "a batch after the last")
		last = b.Last
		require.Equal(t, int64(len(m.bodies))+opts.From, b.First)
		require.Len(t, b.Messages, b.Rows)
		for i, body := range b.Messages {
			operation := b.Operation
			if b.Operations != nil {
				require.Empty(t, operation)
				operation = b.Operations[i]
			}
			switch operation {
			case OperationInsert, OperationUpdateAfter:
				m.inserted = append(m.inserted, body)
			case OperationDelete, OperationUpdateBefore:
				m.deleted = append(m.deleted, body)
			default:
				require.Fail(t, "unknown operation", operation)
			}
			m.operations = append(m.operations, operation)
			m.bodies = append(m.bodies, body)
		}
	}
	require.Equal(t, len(m.bodies) > 0, last, "the last batch says so")
	return m, nil
}

// changesOfStep are what a step's messages say, nil where it is rightly refused.
func changesOfStep(t *testing.T, source Source, step Step, opts ChangeOptions) (*ChangePlan, *messagesRead) {
	t.Helper()
	plan, err := PlanChanges(t.Context(), source, step, opts)
	if refused(err) {
		return nil, nil
	}
	require.NoError(t, err)
	m, err := readChanges(t, plan, ReadOptions{BatchRows: 7})
	if refused(err) {
		return nil, nil
	}
	require.NoError(t, err)
	return plan, &m
}

func TestTheMessagesOfASnapshotAreWhatItChanged(t *testing.T) {
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		for _, s := range c.Snapshots {
			state := c.states[s.ID]
			parent, ok := c.parent(s)
			if !ok || s.Inserted == nil {
				continue
			}
			for _, way := range []Way{WaySnapshot, WayBridge} {
				for _, keys := range [][]string{{}, {"id"}} {
					_, m := changesOfStep(t, c.source(state), Step{Way: way, Before: parent, After: state}, ChangeOptions{IdentifierFields: keys})
					if m == nil {
						continue
					}
					schema := c.SnapshotSchema(s)
					assertRows(t, schema, s.Inserted, canon(t, schema, m.inserted), s.ID)
					assertRows(t, schema, s.Deleted, canon(t, schema, m.deleted), s.ID)
				}
			}
		}
	})
}

func TestTheMessagesBetweenCommitsAreTheirDifference(t *testing.T) {
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		var before *corpus.Commit
		for i := range c.Commits {
			commit := c.Commits[i]
			if commit.Op != "PUT" || commit.Inserted == nil || c.metas[commit.MetadataLocation] == nil {
				continue
			}
			previous := before
			before = &commit
			if previous == nil || commit.NewTable {
				continue
			}
			step := Step{
				Way: WayBridge, Before: c.at(previous), After: *c.at(&commit),
				Schema: c.metas[commit.MetadataLocation].CurrentSchema(), BeforeMeta: c.metas[previous.MetadataLocation],
			}
			source := Source{FS: c.files, Meta: c.metas[commit.MetadataLocation]}
			plan, m := changesOfStep(t, source, step, ChangeOptions{})
			if m == nil || plan.foreign {
				continue
			}
			schema := c.CommitSchema(commit)
			assertRows(t, schema, commit.Inserted, canon(t, schema, m.inserted), commit.Hash)
			assertRows(t, schema, commit.Deleted, canon(t, schema, m.deleted), commit.Hash)
		}
	})
}

// at is the state of a commit.
func (c *corpusTable) at(commit *corpus.Commit) *catalog.State {
	state := catalog.State{SnapshotID: catalog.NoSnapshot, TableUUID: commit.TableUUID, MetadataLocation: commit.MetadataLocation}
	if commit.SnapshotID != catalog.NoSnapshot {
		state = c.states[commit.SnapshotID]
	}
	return &state
}

func TestARewriteSaysNothing(t *testing.T) {
	var rewrites int
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		for _, s := range c.Snapshots {
			parent, ok := c.parent(s)
			if s.Operation != "replace" || !ok {
				continue
			}
			state := c.states[s.ID]
			_, m := changesOfStep(t, c.source(state), Step{Way: WayBridge, Before: parent, After: state}, ChangeOptions{})
			if m != nil {
				rewrites++
				assert.Empty(t, m.bodies)
			}
		}
	})
	assert.Positive(t, rewrites)
}

// Taking a snapshot back brings every type through the comparison: its rows are removed, by key.
func TestASnapshotCanBeTakenBack(t *testing.T) {
	eachCorpusTable(t, func(t *testing.T, c *corpusTable) {
		for _, s := range c.Snapshots {
			state := c.states[s.ID]
			parent, ok := c.parent(s)
			if !ok || s.Inserted == nil {
				continue
			}
			source := c.source(state)
			schema, err := (Step{After: state}).schema(source.Meta)
			require.NoError(t, err)
			step := Step{Way: WayBridge, Before: &state, After: *parent, Schema: schema}
			plan, m := changesOfStep(t, source, step, ChangeOptions{IdentifierFields: []string{"id"}})
			if m == nil || plan.foreign {
				continue
			}
			names := c.SnapshotSchema(s)
			assertRows(t, names, s.Deleted, canon(t, names, m.inserted), s.ID)
			assertRows(t, names, s.Inserted, canon(t, names, m.deleted), s.ID)
		}
	})
}
