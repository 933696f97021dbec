// SPDX-License-Identifier: Apache-2.0

// Package forms has lint rules for texts that stand for something else: durations and sizes. They ask the parsers that read
// the values at the start.
package forms

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

// Lint rules of fields. All pass the empty text, which is what lint makes of a variable that is not set.
const (
	// Duration is of a duration, which may be zero or less.
	Duration = `root = this.` + method + `("duration")`
	// PositiveDuration is of a duration above zero.
	PositiveDuration = `root = this.` + method + `("positive duration")`
	// Size is of a number of bytes below 2 GiB, which is the most that Kafka's protocol can tell.
	Size = `root = this.` + method + `("size")`
)

// method is the Bloblang method that the rules call.
const method = "rpk_nessie_form"

func init() {
	spec := bloblang.NewPluginSpec().
		Deprecated(). // it is for the rules here, and nobody need find it in the documentation
		Description("Lints a text of the given form.").
		Param(bloblang.NewStringParam("form"))
	bloblang.MustRegisterMethodV2(method, spec, func(args *bloblang.ParsedParams) (bloblang.Method, error) {
		form, err := args.GetString("form")
		if err != nil {
			return nil, err
		}
		return func(value any) (any, error) {
			text, _ := value.(string)
			if err := check(form, text); text != "" && err != nil {
				return []any{err.Error()}, nil
			}
			return nil, nil
		}, nil
	})
}

func check(form, text string) error {
	if form == "size" {
		if n, err := humanize.ParseBytes(text); err != nil || n > math.MaxInt32 {
			return fmt.Errorf("expected a size below 2GiB such as 1MiB, got %q", text)
		}
		return nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("expected a duration such as 10s, got %q", text)
	case d <= 0 && form == "positive duration":
		return fmt.Errorf("expected a duration of more than 0, got %q", text)
	}
	return nil
}
