// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"

	"github.com/apache/iceberg-go"
)

// upperCased names a file's format the way iceberg-go compares it. The spec writes the names in lower case, as DuckDB does
// in manifests; the Java library writes capitals and reads either. See docs/upstream.md.
func upperCased(data iceberg.DataFile) iceberg.DataFile {
	format := data.FileFormat()
	upper := iceberg.FileFormat(strings.ToUpper(string(format)))
	if upper == format {
		return data
	}
	return capitals{DataFile: data, format: upper}
}

// capitals is a data file whose format is written in capitals.
type capitals struct {
	iceberg.DataFile
	format iceberg.FileFormat
}

func (c capitals) FileFormat() iceberg.FileFormat { return c.format }
