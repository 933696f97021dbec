// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progressBar shows on a terminal how far reading is. It is nil elsewhere.
type progressBar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	rows     int64
}

// newProgressBar makes a bar on standard error, unless that is no terminal or the rows go to one.
func newProgressBar(r *reading) *progressBar {
	if !isTerminal(os.Stderr) || isTerminal(os.Stdout) {
		return nil
	}
	p := &progressBar{progress: mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(48))}
	counter := decor.CountersNoUnit("%d of %d rows")
	if r.rows < 0 {
		counter = decor.CurrentNoUnit("%d rows")
	}
	p.bar = p.progress.AddBar(max(r.rows, 0),
		mpb.PrependDecorators(decor.Name(r.Config.Key.String()+" ")),
		mpb.AppendDecorators(counter, decor.AverageSpeed(0, " %.0f rows/s")),
	)
	return p
}

func (p *progressBar) add(rows int) {
	if p == nil {
		return
	}
	p.rows += int64(rows)
	p.bar.IncrBy(rows)
}

// end leaves the bar as it is.
func (p *progressBar) end() {
	if p == nil {
		return
	}
	p.bar.SetTotal(p.rows, true)
	p.bar.Abort(false)
	p.progress.Wait()
}
