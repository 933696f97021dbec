// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// lanePosition is where a row stands in the picture. Lanes are columns; a line keeps its lane.
type lanePosition struct {
	// at is the row's own lane.
	at int
	// through are lanes of lines that pass by, joins those of lines that end in this row from above, opens those that
	// merged lines get below it.
	through, joins, opens []int
	// above and below tell whether the row's own lane goes on there.
	above, below bool
}

// assignLanes gives each row its lane and answers how many there are.
func assignLanes(rows []*row) int {
	var lanes []string // the row that each lane waits for; "" is free
	widest := 1
	known := map[string]bool{}
	for _, r := range rows {
		known[r.ID] = true
	}
	free := func() int {
		if i := slices.Index(lanes, ""); i >= 0 {
			return i
		}
		lanes = append(lanes, "")
		return len(lanes) - 1
	}
	for _, r := range rows {
		p := &r.lane
		p.at = slices.Index(lanes, r.ID)
		if p.above = p.at >= 0; !p.above {
			p.at = free()
		}
		for i, waits := range lanes {
			switch {
			case waits == "" || i == p.at:
			case waits == r.ID:
				p.joins = append(p.joins, i)
				lanes[i] = ""
			default:
				p.through = append(p.through, i)
			}
		}
		lanes[p.at] = ""
		for n, parent := range r.Parents {
			if !known[parent] {
				continue
			}
			lane := slices.Index(lanes, parent)
			switch {
			case n == 0:
				lane = p.at
				p.below = true
			case lane < 0:
				if lane = slices.Index(lanes, ""); lane < 0 || lane == p.at {
					lanes = append(lanes, "")
					lane = len(lanes) - 1
				}
				p.opens = append(p.opens, lane)
			default:
				p.opens = append(p.opens, lane)
			}
			lanes[lane] = parent
		}
		widest = max(widest, len(lanes))
	}
	return widest
}
