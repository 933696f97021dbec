// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaultsThatMetadataHoldsAsTextAreFilledIn(t *testing.T) {
	for _, c := range []struct{ typ, text, want string }{
		{`"date"`, "1960-05-06", `"1960-05-06"`},
		{`"time"`, "23:59:59.000001", `"23:59:59.000001"`},
		{`"timestamp"`, "1960-05-06T07:08:09.000001", `"1960-05-06T07:08:09.000001"`},
		{`"timestamptz"`, "2020-01-02T03:04:05.000006+00:00", `"2020-01-02T03:04:05.000006+00:00"`},
		{`"timestamp_ns"`, "1960-05-06T07:08:09.000000001", `"1960-05-06T07:08:09.000000001"`},
		{`"timestamptz_ns"`, "2020-01-02T03:04:05.000000006+00:00", `"2020-01-02T03:04:05.000000006+00:00"`},
		{`"string"`, "1960-05-06", `"1960-05-06"`},
		{`"decimal(9, 2)"`, "-12.34", `"-12.34"`},
	} {
		t.Run(c.typ, func(t *testing.T) {
			eachForeignFile(t, func(t *testing.T, file foreignFile, _ *Plan) {
				if file.Name != "none_v1" {
					return
				}
				var fields []map[string]any
				require.NoError(t, json.Unmarshal(file.Fields, &fields))
				var err error
				later := map[string]any{"id": 90, "name": "later", "required": false, "type": json.RawMessage(c.typ), "initial-default": c.text, "write-default": c.text}
				file.Fields, err = json.Marshal(append(fields, later))
				require.NoError(t, err)
				file.Format = 3
				rows, err := readRows(t, file.plan(t), ReadOptions{})
				require.NoError(t, err)
				require.Len(t, rows, int(file.Rows))
				for _, row := range rows {
					var got map[string]json.RawMessage
					require.NoError(t, json.Unmarshal([]byte(row), &got))
					require.JSONEq(t, c.want, string(got["later"]))
				}
			})
		})
	}
}
