// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Kind is what a step does to the table's rows. It comes from manifest entries, never from a snapshot's summary; only for
// replace is the summary asked first and then verified.
type Kind string

// The kinds of plans.
const (
	KindTableScan Kind = "table_scan" // every row of the state
	KindAppend    Kind = "append"     // data files came, nothing else
	KindDelete    Kind = "delete"     // rows went, no data file came
	KindOverwrite Kind = "overwrite"  // rows went or may have gone, and rows came
	KindReplace   Kind = "replace"    // the same rows in other files
	KindEmpty     Kind = "empty"      // no file came or went
)

// Plan is what a step delivers: which files, with which deletes, in which order. It is immutable, holds no open files,
// and can be read any number of times, by several goroutines too.
type Plan struct {
	Kind Kind
	// Tasks are the data files that the step adds (all live ones in a table scan), in delivery order.
	Tasks []Task
	// Removed are the data files that the step takes away, with the deletes that applied to them before, and Changed those
	// that stay with other deletes. Only a bridge tells them; other ways leave them nil.
	Removed []Task
	Changed []Change
	// Records is the number of rows in Tasks, or -1 where deletes apply to any of them or a query filters. Bytes and Files count their data
	// files, as the manifests say.
	Records int64
	Bytes   int64
	Files   int
	// Digest identifies what is delivered and in which order: equal digests make a row ordinal mean the same row.
	Digest string
	// Schema is the projected schema: the columns of the rows in order.
	Schema *iceberg.Schema
	// ManifestsOpened is how many manifests planning opened, the manifest lists aside.
	ManifestsOpened int

	source  Source
	after   catalog.State
	schema  *iceberg.Schema // unprojected
	columns []string
	filter  *filter // nil: every row
	// equality has the equality deletes of the tasks while a plan is read; nil: each task reads its own.
	equality *equalityReader
}

// planner is one PlanStep.
type planner struct {
	source Source
	step   Step
	opened atomic.Int64
}

// PlanStep plans a step from manifests. Nothing but manifests is opened, except to verify a replace whose files carry
// deletes. Errors: *MissingFileError, *CorruptFileError, *UnsupportedError, *UnknownColumnError, *SchemaError,
// *CatchUpError, *QueryError, or storage's own wrapped with the file's name.
func PlanStep(ctx context.Context, source Source, step Step) (*Plan, error) {
	if key := source.Meta.Properties()["encryption.key-id"]; key != "" {
		return nil, &UnsupportedError{What: "encrypted table"}
	}
	if step.Query != nil && step.Way != WayTableScan {
		return nil, fmt.Errorf("a query can't filter a step by %s", step.Way)
	}
	schema, err := step.schema(source.Meta)
	if err != nil {
		return nil, err
	}
	projected, err := project(source.Meta, schema, step.Columns)
	if err != nil {
		return nil, err
	}
	p := &planner{source: source, step: step}
	plan := &Plan{Schema: projected, source: source, after: step.After, schema: schema, columns: step.Columns}
	if step.Query != nil {
		if plan.filter, err = step.Query.bind(schema); err != nil {
			return nil, err
		}
	}
	if err := p.find(ctx, plan); err != nil {
		return nil, err
	}
	plan.ManifestsOpened = int(p.opened.Load())
	plan.finish()
	if plan.Kind == KindDelete || plan.Kind == KindOverwrite || plan.Kind == KindReplace {
		return plan, nil // the caller may have no use for the files; Read refuses what it can't read
	}
	return plan, plan.refuseUnsupported()
}

func (p *planner) find(ctx context.Context, plan *Plan) error {
	switch p.step.Way {
	case WayTableScan:
		if plan.filter != nil {
			return p.tableScanWhere(ctx, plan)
		}
		return p.tableScan(ctx, plan)
	case WaySnapshot:
		if len(p.step.After.Manifests) > 0 && p.step.Before != nil {
			// Manifests without a list do not say which snapshot added them, so that a file that is no longer listed, or
			// whose deleted entry kept the id of the snapshot that added it, would not be seen as removed here.
			return p.bridge(ctx, plan)
		}
		return p.snapshot(ctx, plan)
	case WayBridge:
		return p.bridge(ctx, plan)
	case WayCatchUp:
		return p.catchUp(ctx, plan)
	}
	return fmt.Errorf("there is no way %q to plan a step", p.step.Way)
}

func (p *planner) after() side {
	return side{fs: p.source.FS, state: p.step.After, opened: &p.opened}
}

func (p *planner) before() side {
	state := catalog.State{SnapshotID: catalog.NoSnapshot}
	if p.step.Before != nil {
		state = *p.step.Before
	}
	return side{fs: p.source.FS, state: state, opened: &p.opened}
}

func (p *planner) specs() specLookup { return specsOf(p.source.Meta) }

func (p *planner) beforeSpecs() specLookup {
	if p.step.BeforeMeta != nil {
		return specsOf(p.step.BeforeMeta)
	}
	return p.specs()
}

func specsOf(meta table.Metadata) specLookup {
	specs := map[int32]*iceberg.PartitionSpec{}
	for _, spec := range meta.PartitionSpecs() {
		specs[int32(spec.ID())] = &spec
	}
	return func(id int32) *iceberg.PartitionSpec { return specs[id] }
}

// tableScan plans every live data file of After.
func (p *planner) tableScan(ctx context.Context, plan *Plan) error {
	plan.Kind = KindTableScan
	after := p.after()
	manifests, err := after.manifests(ctx)
	if err != nil {
		return err
	}
	files, err := after.live(ctx, manifests)
	if err != nil {
		return err
	}
	data, deletes := splitFiles(files)
	index, err := newDeleteIndex(deletes, p.specs())
	if err != nil {
		return err
	}
	plan.Tasks, err = index.tasks(data)
	return err
}

func splitFiles(files []File) (data, deletes []File) {
	for _, f := range files {
		if f.Data.ContentType() == iceberg.EntryContentData {
			data = append(data, f)
		} else {
			deletes = append(deletes, f)
		}
	}
	return data, deletes
}

// finish orders the tasks and derives what follows from them.
func (p *Plan) finish() {
	byFile := func(a, b Task) int { return compareFiles(a.File, b.File) }
	slices.SortFunc(p.Tasks, byFile)
	slices.SortFunc(p.Removed, byFile)
	slices.SortFunc(p.Changed, func(a, b Change) int { return compareFiles(a.File, b.File) })
	p.Files = len(p.Tasks)
	for _, t := range p.Tasks {
		p.Bytes += t.File.Data.FileSizeBytes()
		if rows := p.rowsOf(t); rows < 0 || p.Records < 0 {
			p.Records = -1
		} else {
			p.Records += rows
		}
	}
	p.Digest = p.digest()
}

// rowsOf is the number of rows that a task delivers, or -1 where only reading tells.
func (p *Plan) rowsOf(t Task) int64 {
	if p.filter != nil {
		return -1
	}
	return t.Rows()
}

// refuseUnsupported names the first file, in delivery order, that can't be read.
func (p *Plan) refuseUnsupported() error {
	if len(p.Tasks) > 0 {
		if err := refuseVariantsInside(p.Schema); err != nil {
			return err
		}
	}
	for _, t := range p.Tasks {
		if err := t.refuseUnsupported(); err != nil {
			return err
		}
	}
	return nil
}

func (t Task) refuseUnsupported() error {
	if err := unsupported("data file", t.File.Data); err != nil {
		return err
	}
	for d := range t.Deletes.all() {
		if err := unsupported("delete file", d.Data); err != nil {
			return err
		}
	}
	return nil
}

// refuseVariantsInside names the first column with a list of variants or a map to them, which no file can be read with.
func refuseVariantsInside(schema *iceberg.Schema) error {
	for _, f := range schema.Fields() {
		if held := variantHolder(f.Type); held != nil {
			return &UnsupportedError{What: fmt.Sprintf("column %q, of type %s,", f.Name, f.Type)}
		}
	}
	return nil
}

// variantHolder is the first list or map whose elements, keys or values are variants, nil without any.
func variantHolder(t iceberg.Type) iceberg.Type {
	nested, ok := t.(iceberg.NestedType)
	if !ok {
		return nil
	}
	_, fields := t.(*iceberg.StructType)
	for _, f := range nested.Fields() {
		if _, variant := f.Type.(iceberg.VariantType); variant && !fields {
			return t
		}
		if held := variantHolder(f.Type); held != nil {
			return held
		}
	}
	return nil
}

func unsupported(what string, data iceberg.DataFile) error {
	if len(data.KeyMetadata()) > 0 {
		return &UnsupportedError{What: "encrypted " + what, Path: data.FilePath()}
	}
	switch data.FileFormat() {
	case iceberg.ParquetFile:
		return nil
	case iceberg.PuffinFile:
		if table.IsDeletionVector(data) {
			return nil
		}
	case iceberg.AvroFile:
		return &UnsupportedError{What: "Avro " + what, Path: data.FilePath()}
	case iceberg.OrcFile:
		return &UnsupportedError{What: "ORC " + what, Path: data.FilePath()}
	}
	return &UnsupportedError{What: fmt.Sprintf("%s of format %s", what, data.FileFormat()), Path: data.FilePath()}
}
