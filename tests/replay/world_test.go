// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/scan"
	"github.com/rpk-nessie/rpk-nessie/tests/histories"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

// world is a Nessie with one table whose rows have a unique id, and what
// iceberg-go reads of each of its snapshots.
type world struct {
	*tables.Place
	rt    histories.Failer
	ctx   context.Context
	vault *histories.Vault

	key       catalog.Key
	shape     shape
	snapshots map[int64]*snapshot
	heads     []head   // of main, oldest first
	moved     bool     // the branch was reset: ids of schemas and fields are not unique any more
	marked    bool     // delete files may be live
	aimed     bool     // position delete files may be, which a vector that iceberg-go writes replaces without having read them
	told      []string // what happened, for failures
}

// shape is how the table is written.
type shape struct {
	version     string
	deletes     string // write.delete.mode
	partitioned bool
	identified  bool // the schema has identifier fields
	stays       bool // the schema does not change
}

// snapshot is the truth about one snapshot.
type snapshot struct {
	schema *iceberg.Schema
	rows   []values
}

type head struct {
	snapshot int64
	commit   string
}

// values are the values of a row that are not null, as JSON, by field id. So
// rows under different schemas of a table can be compared.
type values map[int]string

// under leaves out the columns that a schema does not have.
func (v values) under(s *iceberg.Schema) string {
	var b strings.Builder
	for _, f := range s.Fields() {
		if text, ok := v[f.ID]; ok {
			fmt.Fprintf(&b, "%d=%s ", f.ID, text)
		}
	}
	return b.String()
}

const fieldID, fieldPart, fieldName, fieldNumber, fieldScore = 1, 2, 3, 4, 5

func (s shape) schema() *iceberg.Schema {
	fields := []iceberg.NestedField{
		{ID: fieldID, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		{ID: fieldPart, Name: "part", Type: iceberg.PrimitiveTypes.String},
		{ID: fieldName, Name: "name", Type: iceberg.PrimitiveTypes.String},
		{ID: fieldNumber, Name: "number", Type: iceberg.PrimitiveTypes.Int32},
		{ID: fieldScore, Name: "score", Type: iceberg.PrimitiveTypes.Float64},
	}
	if s.identified {
		return iceberg.NewSchemaWithIdentifiers(0, []int{fieldID}, fields...)
	}
	return iceberg.NewSchema(0, fields...)
}

func (s shape) options() nessietest.TableOptions {
	o := nessietest.TableOptions{Properties: iceberg.Properties{
		"write.parquet.compression-codec": "uncompressed", "write.delete.mode": s.deletes, "format-version": s.version,
	}}
	if s.partitioned {
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{
			SourceIDs: []int{fieldPart}, FieldID: 1000, Name: "part", Transform: iceberg.IdentityTransform{},
		})
		o.Spec = &spec
	}
	return o
}

func newWorld(ctx context.Context, rt histories.TB, s shape) *world {
	w := &world{
		Place: tables.Open(rt, nessietest.Options{}, nessietest.WriterConfig{}), rt: rt, ctx: ctx, key: tables.Orders(), shape: s,
		snapshots: map[int64]*snapshot{},
	}
	w.vault = histories.NewVault(rt, w.Warehouse)
	return w
}

func (w *world) tell(format string, args ...any) {
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

// record reads the snapshots of a commit and notes the new head. Later their
// files may be gone.
func (w *world) record(written nessietest.Written) {
	for _, s := range written.Snapshots {
		w.snapshots[s.SnapshotID] = w.read(written.Metadata, s.SnapshotID)
		w.tell("    snapshot %d (%s, schema %d): %d rows", s.SnapshotID, s.Summary.Operation, w.snapshots[s.SnapshotID].schema.ID, len(w.snapshots[s.SnapshotID].rows))
	}
	w.vault.Secure()
	w.observe()
}

// read is a full scan by iceberg-go under the snapshot's schema.
func (w *world) read(meta table.Metadata, id int64) *snapshot {
	fs := func(context.Context) (iceio.IO, error) { return iceio.LocalFS{}, nil }
	tbl := table.New(table.Identifier(w.key), meta, "", fs, nil)
	schema := meta.CurrentSchema()
	if of := meta.SnapshotByID(id).SchemaID; of != nil {
		for _, s := range meta.Schemas() {
			if s.ID == *of {
				schema = s
			}
		}
	}
	out := &snapshot{schema: schema}
	_, batches, err := tbl.Scan(table.WithSnapshotID(id)).ToArrowRecords(w.ctx)
	histories.Check(w.rt, err)
	encoder, err := scan.NewEncoder(schema)
	histories.Check(w.rt, err)
	for batch, err := range batches {
		histories.Check(w.rt, err)
		buf, ends, err := encoder.Append(nil, nil, batch, 0, int(batch.NumRows()))
		histories.Check(w.rt, err)
		start := 0
		for _, end := range ends {
			v, err := parse(buf[start:end], schema)
			histories.Check(w.rt, err)
			out.rows, start = append(out.rows, v), end
		}
		batch.Release()
	}
	ids := map[string]bool{} // where rows have no key it does not matter
	for _, row := range out.rows {
		if ids[row[fieldID]] && !w.shape.stays {
			w.rt.Fatalf("the test itself: snapshot %d holds id %s twice\n%s", id, row[fieldID], strings.Join(w.told, "\n"))
		}
		ids[row[fieldID]] = true
	}
	return out
}

// observe notes what the branch holds.
func (w *world) observe() {
	found, err := w.Client.Head(w.ctx, catalog.Ref{Name: "main"}, w.key)
	histories.Check(w.rt, err)
	h := head{found.Content.SnapshotID, found.Reference.Hash}
	if n := len(w.heads); n == 0 || w.heads[n-1] != h {
		w.heads = append(w.heads, h)
		w.tell("    head: snapshot %d", h.snapshot)
	}
}

func (w *world) head() head { return w.heads[len(w.heads)-1] }

// of is the truth about a snapshot; none holds no rows.
func (w *world) of(id int64) *snapshot {
	if s := w.snapshots[id]; s != nil {
		return s
	}
	if id != catalog.NoSnapshot {
		w.rt.Fatalf("there is no snapshot %d", id)
	}
	return &snapshot{schema: w.shape.schema()}
}
