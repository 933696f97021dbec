// SPDX-License-Identifier: Apache-2.0

// Package scan plans what a step of a table delivers, from manifests, and reads it as batches of encoded rows in one
// deterministic order.
//
// PlanStep turns a Step (what lies between two states) into a Plan (which data files, with which deletes); Plan.Read
// decodes the files ahead in parallel and yields batches in order. File is the plain value that both share; deletes.go
// holds the rule which deletes apply to a data file (Iceberg spec, "Scan Planning").
//
// PlanChanges and ChangePlan.Read say what a step did to the table's rows instead: changes*.go find the rows of both
// sides (positions*.go where only deletes changed), multiset*.go subtract them from each other, spill*.go hold what does
// not fit into memory, and pairs.go makes messages of what remains.
package scan

import (
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/apache/iceberg-go"

	"github.com/rpk-nessie/rpk-nessie/catalog"
)

// Source is where a table's files are and which metadata explains them. FS must be safe for concurrent use and serve
// every location that the table names. Meta supplies schemas, partition specs and the name mapping; both are only read.
type Source struct {
	FS   iceio.IO
	Meta table.Metadata
}

// Way is how the rows of a step are found. The values are those of lineage.Kind.
type Way string

// The ways to plan a step.
const (
	// WayTableScan reads every live row of After.
	WayTableScan Way = "table_scan"
	// WaySnapshot reads what the snapshot After itself did; that its parent is Before must be proved by the caller.
	WaySnapshot Way = "snapshot"
	// WayBridge reads the difference between the files of Before and After, whatever lies between.
	WayBridge Way = "bridge"
	// WayCatchUp reads After's live files with a data sequence number above Before's, if they can be proved to be all.
	WayCatchUp Way = "catch_up"
)

// Step is what leads from one state of a table to another. It is a plain value.
type Step struct {
	Way    Way
	Before *catalog.State // unused by WayTableScan; WaySnapshot does without it
	After  catalog.State
	// Columns are the names to read, dotted for nested fields; none: all of them. Their order does not matter: rows have
	// the table's order.
	Columns []string
	// Query leaves only the rows that pass it; nil: all. Only WayTableScan takes one. Its columns need not be in Columns.
	Query *Query
	// Schema is the schema to read with; nil: the one that After names. Full scans give the table's current schema.
	Schema *iceberg.Schema
	// BeforeMeta explains Before's files where Source.Meta does not (another table uuid); nil: Source.Meta does.
	BeforeMeta table.Metadata
}

// schema is the unprojected schema that the step is read with.
func (s Step) schema(meta table.Metadata) (*iceberg.Schema, error) {
	if s.Schema != nil {
		return s.Schema, nil
	}
	if s.After.Empty() {
		return meta.CurrentSchema(), nil
	}
	for _, schema := range meta.Schemas() {
		if schema.ID == s.After.SchemaID {
			return schema, nil
		}
	}
	return nil, &SchemaError{Snapshot: s.After.SnapshotID, SchemaID: s.After.SchemaID}
}

// stepMetadata makes iceberg-go take the step's schema for the table's current one.
type stepMetadata struct {
	table.Metadata
	schema *iceberg.Schema
}

func (m stepMetadata) CurrentSchema() *iceberg.Schema { return m.schema }
