// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rpk-nessie/rpk-nessie/catalog"
	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
)

var ordersKey = catalog.Key{"shop", "orders"}

// delivery is one row as a message of the pipeline carries it.
type delivery struct{ snapshot, body string }

// orders writes the demo's table and remembers which row belongs to which snapshot.
type orders struct {
	client  *catalog.Client
	writer  *nessietest.Writer
	say     *narrator
	written []delivery
	current string // snapshot id
	sizes   map[string]int
	coupons bool
}

func newOrders(ctx context.Context, stage *venue, say *narrator) (*orders, error) {
	client, err := stage.client()
	if err != nil {
		return nil, err
	}
	writer, err := nessietest.NewWriter(ctx, nessietest.WriterConfig{
		Catalog: client, Branch: stage.branch, Warehouse: stage.warehouse, Storage: stage.properties(),
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return &orders{client: client, writer: writer, say: say, sizes: map[string]int{}}, nil
}

func (o *orders) close() { o.client.Close() }

func (o *orders) create(ctx context.Context, rows int) error {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "item", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "price", Type: iceberg.DecimalTypeOf(9, 2)},
		iceberg.NestedField{ID: 4, Name: "ordered_at", Type: iceberg.PrimitiveTypes.TimestampTz},
	)
	bodies := o.next(rows)
	written, err := o.writer.Create(ctx, ordersKey, schema, nessietest.TableOptions{}, nessietest.Append(bodies...))
	return o.note(written, err, bodies)
}

func (o *orders) append(ctx context.Context, rows int) error {
	bodies := o.next(rows)
	written, err := o.writer.Append(ctx, ordersKey, bodies...)
	return o.note(written, err, bodies)
}

// addColumn changes the schema and adds rows, in one commit.
func (o *orders) addColumn(ctx context.Context, rows int) error {
	o.coupons = true
	bodies := o.next(rows)
	written, err := o.writer.Commit(ctx, ordersKey, nessietest.Change{Message: "add coupon", Steps: []nessietest.Step{
		nessietest.ChangeSchema(func(u *table.UpdateSchema) *table.UpdateSchema {
			return u.AddColumn([]string{"coupon"}, iceberg.PrimitiveTypes.String, "", false, nil)
		}),
		nessietest.Append(bodies...),
	}})
	return o.note(written, err, bodies)
}

// next makes rows as the pipeline is to deliver them.
func (o *orders) next(rows int) []string {
	items := []string{"lamp", "desk", "chair", "plant", "clock"}
	start := time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC)
	var bodies []string
	for i := range rows {
		id := len(o.written) + i + 1
		at := start.Add(time.Duration(id) * 7 * time.Minute).Format("2006-01-02T15:04:05.000000")
		body := fmt.Sprintf(`{"id":%d,"item":%q,"price":"%d.%02d","ordered_at":"%s+00:00"`, id, items[id%len(items)], 5+id*3, id*37%100, at)
		if o.coupons {
			body += `,"coupon":"SPRING"`
		}
		bodies = append(bodies, body+"}")
	}
	return bodies
}

func (o *orders) note(written nessietest.Written, err error, bodies []string) error {
	if err != nil {
		return err
	}
	snapshot := written.Snapshots[len(written.Snapshots)-1]
	o.current = strconv.FormatInt(snapshot.SnapshotID, 10)
	o.sizes[o.current] = len(bodies)
	for _, body := range bodies {
		o.written = append(o.written, delivery{o.current, body})
	}
	o.say.line("commit      snapshot %s, sequence %d, %d rows, Nessie commit %.12s", o.current, snapshot.SequenceNumber, len(bodies), written.Commit)
	return nil
}
