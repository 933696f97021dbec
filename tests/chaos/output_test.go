// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// line is a row in the output file.
type line struct {
	ID int64 `json:"id"`
}

// output is the file that the binary writes, and what was found in it.
type output struct {
	t    *testing.T
	path string
	at   int64 // how much of the file was read

	seen map[int64]int // how often a row came
	// allowed is how often a row may come: once, and once more for each kill that it was in flight at.
	allowed map[int64]int
	whole   int64   // rows 1 to whole came
	flying  []int64 // rows that were beyond the checkpoint at the last kill, or came since
	torn    int     // lines that a kill cut in two
	again   int     // rows that came more than once
	beyond  int     // rows in flight, over all kills
	largest int     // most rows in flight at a kill
}

func newOutput(t *testing.T, path string) *output {
	return &output{t: t, path: path, seen: map[int64]int{}, allowed: map[int64]int{}}
}

// read takes the lines that are new.
func (o *output) read() {
	f, err := os.Open(o.path)
	if os.IsNotExist(err) {
		return // no life came so far
	}
	require.NoError(o.t, err)
	defer f.Close()
	_, err = f.Seek(o.at, io.SeekStart)
	require.NoError(o.t, err)
	text, err := io.ReadAll(f)
	require.NoError(o.t, err)
	end := bytes.LastIndexByte(text, '\n') + 1
	o.at += int64(end)
	for row := range bytes.Lines(text[:end]) {
		var l line
		if json.Unmarshal(row, &l) != nil {
			// The end of a life and the beginning of the next are one line. What the first wrote of its row is no row: the
			// output did not accept it.
			o.torn++
			start := bytes.LastIndexByte(row, '{')
			if start <= 0 || json.Unmarshal(row[start:], &l) != nil {
				continue
			}
		}
		o.take(l.ID)
	}
	for o.seen[o.whole+1] > 0 {
		o.whole++
	}
}

func (o *output) take(row int64) {
	if o.seen[row]++; o.seen[row] > 1 {
		o.again++
	}
	require.LessOrEqual(o.t, o.seen[row], o.allowed[row]+1, "row %d came again, and it was in flight at no kill", row)
	o.flying = append(o.flying, row)
}

// killed is told of each kill, with the number of rows that the stored checkpoint stands behind. Those beyond may come
// again, as often as they were in flight.
func (o *output) killed(stands int64) {
	o.read()
	require.GreaterOrEqual(o.t, o.whole, stands, "the checkpoint is ahead of what the output accepted")
	flying := map[int64]bool{}
	for _, row := range o.flying {
		if row > stands {
			flying[row] = true
			o.allowed[row] = o.seen[row]
		}
	}
	o.flying = o.flying[:0]
	for row := range flying {
		o.flying = append(o.flying, row)
	}
	o.beyond += len(flying)
	o.largest = max(o.largest, len(flying))
}
