// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"math"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// Planning leaves a manifest closed when its partition summaries, and a file out when its partition and column metrics
// leave no row that could pass.

// tableScanWhere plans the live data files of After that may hold rows that pass.
func (p *planner) tableScanWhere(ctx context.Context, plan *Plan) error {
	plan.Kind = KindTableScan
	after := p.after()
	after.metrics = true
	manifests, err := after.manifests(ctx)
	if err != nil {
		return err
	}
	data, deletes := split(manifests)
	var open []iceberg.ManifestFile
	for _, m := range data {
		if plan.filter.mayPass(manifestFacts(m, p.specs())) {
			open = append(open, m)
		}
	}
	entries, err := after.entries(ctx, open, func(e entry) bool {
		return e.live() && plan.filter.mayPass(fileFacts(e.Data, p.specs()))
	})
	if err != nil {
		return err
	}
	files := filesOf(entries)
	removed, err := after.live(ctx, matching(deletes, p.specs(), files))
	if err != nil {
		return err
	}
	index, err := newDeleteIndex(removed, p.specs())
	if err != nil {
		return err
	}
	plan.Tasks, err = index.tasks(files)
	return err
}

func (f *filter) mayPass(of factsOf) bool { return f.root.possible(of).has(yes) }

// manifestFacts is what a manifest's partition summaries say.
func manifestFacts(m iceberg.ManifestFile, specs specLookup) factsOf {
	spec, summaries := specs(m.PartitionSpecID()), m.Partitions()
	return func(c boundColumn) facts {
		f := unknownFacts()
		if spec == nil || spec.NumFields() != len(summaries) {
			return f
		}
		for i, s := range summaries {
			if field := spec.Field(i); field.SourceID() == c.id {
				f = f.both(summaryFacts(s, field.Transform, c.typ))
			}
		}
		return f
	}
}

// summaryFacts turns the summary of a partition field into facts of the column that it is made from.
func summaryFacts(s iceberg.FieldSummary, t iceberg.Transform, typ iceberg.Type) facts {
	if !keepsNull(t) {
		return unknownFacts()
	}
	f := unknownFacts()
	f.null = s.ContainsNull
	if s.LowerBound == nil || s.UpperBound == nil {
		return f
	}
	if isIdentity(t) && s.ContainsNaN != nil {
		f.nan = *s.ContainsNaN
	}
	result := t.ResultType(typ)
	return f.within(decodeBound(*s.LowerBound, result), decodeBound(*s.UpperBound, result), t, typ)
}

// fileFacts is what a manifest entry says of a data file: by its partition, and by the metrics of its columns.
func fileFacts(d iceberg.DataFile, specs specLookup) factsOf {
	spec, partition := specs(d.SpecID()), d.Partition()
	return func(c boundColumn) facts {
		f := metricFacts(d, c)
		if spec == nil {
			return f
		}
		for i := range spec.NumFields() {
			field := spec.Field(i)
			value, ok := partition[field.FieldID]
			if ok && field.SourceID() == c.id {
				f = f.both(partitionFacts(value, field.Transform, c.typ))
			}
		}
		return f
	}
}

// metricFacts leaves open what a writer did not measure.
func metricFacts(d iceberg.DataFile, c boundColumn) facts {
	f := unknownFacts()
	values, counted := d.ValueCounts()[c.id]
	if nulls, ok := d.NullValueCounts()[c.id]; ok {
		f.null = nulls != 0
		if counted && values > 0 && nulls == values {
			f.value, f.nan = false, false
		}
	}
	if nans, ok := d.NaNValueCounts()[c.id]; ok {
		f.nan = f.nan && nans != 0
	}
	if b, ok := d.LowerBoundValues()[c.id]; ok {
		f.low = decodeBound(b, c.typ)
	}
	if b, ok := d.UpperBoundValues()[c.id]; ok {
		f.high = decodeBound(b, c.typ)
	}
	return f
}

// partitionFacts turns a partition value into facts of the column that it is made from.
func partitionFacts(value any, t iceberg.Transform, typ iceberg.Type) facts {
	if !keepsNull(t) {
		return unknownFacts()
	}
	if value == nil {
		return facts{null: true}
	}
	f := facts{value: true, nan: !isIdentity(t)}
	bound := partitionBound(value, typ)
	if f, ok := bound.(float64); ok && math.IsNaN(f) {
		return facts{nan: true}
	}
	return f.within(bound, bound, t, typ)
}

// partitionBound is a partition value in its domain; nil where it is in none.
func partitionBound(value any, typ iceberg.Type) any {
	if n, ok := integerOf(value); ok {
		return n
	}
	switch v := value.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case float32:
		return float64(v)
	case float64:
		return v
	case iceberg.Decimal:
		return v.Val
	case iceberg.DecimalLiteral:
		return v.Val
	}
	b, ok := bytesOf(value)
	if !ok {
		return nil
	}
	if _, ok := typ.(iceberg.DecimalType); ok { // a manifest that does not mark the type as decimal
		return bounded(decimalDomain, b)
	}
	return string(b)
}

func isIdentity(t iceberg.Transform) bool {
	_, ok := t.(iceberg.IdentityTransform)
	return ok
}

// keepsNull is true for the transforms that give NULL for NULL, and only then.
func keepsNull(t iceberg.Transform) bool {
	switch t.(type) {
	case iceberg.IdentityTransform, iceberg.BucketTransform, iceberg.TruncateTransform,
		iceberg.YearTransform, iceberg.MonthTransform, iceberg.DayTransform, iceberg.HourTransform:
		return true
	}
	return false
}

// within adds what partition values from low to high say of the column.
func (f facts) within(low, high any, t iceberg.Transform, typ iceberg.Type) facts {
	if low == nil || high == nil {
		return f
	}
	switch t := t.(type) {
	case iceberg.IdentityTransform:
		f.low, f.high = low, high
	case iceberg.BucketTransform:
		first, ok := low.(int64)
		last, okLast := high.(int64)
		if ok && okLast {
			f.buckets = append(f.buckets, bucketFact{t, first, last})
		}
	case iceberg.TruncateTransform:
		f.low, f.high = low, endOfTruncated(high, int64(t.Width))
	default:
		first, ok := low.(int64)
		last, okLast := high.(int64)
		if !ok || !okLast {
			return f
		}
		// Old writers rounded moments before 1970 up, so that a partition can hold those of the one before.
		if first <= 0 {
			first--
		}
		f.low = startOf(first, t, typ)
		if end, ok := startOf(last+1, t, typ).(int64); ok {
			f.high = end - 1
		}
	}
	return f
}

// endOfTruncated bounds the values that are truncated to one.
func endOfTruncated(value any, width int64) any {
	switch v := value.(type) {
	case int64:
		if v > math.MaxInt64-width {
			return nil
		}
		return v + width - 1
	case decimal128.Num:
		return v.Add(decimal128.FromI64(width - 1))
	case string:
		if end, ok := successor(v); ok {
			return end
		}
	}
	return nil
}

// startOf is the first value of a column in the n-th year, month, day or hour since 1970; nil where the column can't hold
// it.
func startOf(n int64, t iceberg.Transform, typ iceberg.Type) any {
	const most = 1 << 40 // of hours; beyond every type
	if n < -most || n > most {
		return nil
	}
	var start *big.Int
	switch t.(type) {
	case iceberg.YearTransform, iceberg.MonthTransform:
		year, month := 1970, 1
		if _, ok := t.(iceberg.YearTransform); ok {
			year += int(n)
		} else {
			month += int(n)
		}
		start = big.NewInt(time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC).Unix())
	case iceberg.DayTransform:
		start = big.NewInt(n * 24 * 60 * 60)
	default:
		start = big.NewInt(n * 60 * 60)
	}
	switch typ.(type) {
	case iceberg.DateType:
		start.Div(start, big.NewInt(24*60*60))
	case iceberg.TimestampType, iceberg.TimestampTzType:
		start.Mul(start, big.NewInt(1_000_000))
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		start.Mul(start, big.NewInt(1_000_000_000))
	default:
		return nil
	}
	if !start.IsInt64() {
		return nil
	}
	return start.Int64()
}
