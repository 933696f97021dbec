// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
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
	p := &progressBar{progress: mpb.New(barOutput(os.Stderr)...)}
	counter := decor.CountersNoUnit("%d of %d rows")
	if r.rows < 0 {
		counter = decor.CurrentNoUnit("%d rows")
	}
	p.bar = p.progress.AddBar(max(r.rows, 0), mpb.BarWidth(48),
		mpb.PrependDecorators(decor.Name(r.Config.Key.String()+" ")),
		mpb.AppendDecorators(counter, decor.AverageSpeed(0, " %.0f rows/s")),
	)
	return p
}

// barOutput draws to a terminal. One that does not tell its size, as in some containers, is taken for 80 columns wide.
func barOutput(terminal *os.File) []mpb.ContainerOption {
	if width, height, err := cwriter.GetSize(int(terminal.Fd())); err == nil && width > 0 && height > 0 {
		return []mpb.ContainerOption{mpb.WithOutput(terminal)}
	}
	// mpb asks any *os.File for its size.
	return []mpb.ContainerOption{mpb.WithOutput(struct{ io.Writer }{terminal}), mpb.WithAutoRefresh(), mpb.WithWidth(80)}
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
