// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"context"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/assert"

	"github.com/rpk-nessie/rpk-nessie/catalog/nessietest"
	"github.com/rpk-nessie/rpk-nessie/tests/tables"
)

func TestMetricsOfARun(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	s := openShop(t, nessietest.Options{Clock: func() time.Time { at = at.Add(time.Minute); return at }})
	s.create(nessietest.TableOptions{}, nessietest.Append(orders(1, 2, 3)...))
	r := newRig(t)
	fields := s.increments("start_from: earliest", "poll_interval: 1ms", "batch_rows: 2")
	first := r.start(fields)
	r.eventually(func() bool { return r.numbers.of("nessie_polls", "result=unchanged") > 0 && r.cache.place().Step == 1 }, "the first snapshot")
	first.stop()

	s.add(4)
	s.add(5)
	hold := make(chan struct{})
	r.out.decide(func(context.Context, service.MessageBatch) error { <-hold; return nil })
	l := r.start(fields)
	r.eventually(func() bool { return r.numbers.of("nessie_rows_in_flight") == 2 }, "both in flight")
	n := r.numbers
	assert.Equal(t, int64(2), n.of("nessie_lag_snapshots"))
	assert.Equal(t, int64(120), n.of("nessie_lag_seconds"))
	assert.Equal(t, int64(5), n.of("nessie_rows_read"))
	assert.Equal(t, int64(3), n.of("nessie_rows_acked"))
	assert.Equal(t, int64(3), n.of("nessie_snapshots_delivered"))
	assert.Equal(t, int64(1), n.of("nessie_snapshots_acked"))
	assert.Equal(t, int64(1), n.of("nessie_acked_sequence"))
	close(hold)
	r.eventually(func() bool { return r.cache.place().Step == 3 && n.of("nessie_snapshots_acked") == 3 }, "all acknowledged")
	l.stop()

	assert.Zero(t, n.of("nessie_lag_snapshots"))
	assert.Zero(t, n.of("nessie_lag_seconds"))
	assert.Zero(t, n.of("nessie_rows_in_flight"))
	assert.Equal(t, int64(3), n.of("nessie_acked_sequence"))
	assert.Equal(t, int64(5), n.of("nessie_rows_acked", "table=shop.orders", "label=orders", "path=root.input"))
	assert.Equal(t, int64(len(tables.Order(1))*5), n.of("nessie_bytes_delivered"))
	assert.Greater(t, n.of("nessie_bytes_read"), int64(1000))
	assert.Equal(t, int64(3), n.of("nessie_steps", "found_by=metadata")+n.of("nessie_steps", "found_by=header"))
	assert.Positive(t, n.of("nessie_polls", "result=unchanged"))
	assert.Equal(t, int64(2), n.of("nessie_polls", "result=changed"))
	assert.Positive(t, n.of("nessie_catalog_requests", "call=head", "status=200"))
	assert.Equal(t, int64(len(r.cache.writes())-2), n.of("nessie_checkpoint_writes", "result=written"), "all but the claims")
	assert.Zero(t, n.of("nessie_rows_redelivered"))
	assert.Equal(t, []string{
		"nessie_acked_sequence", "nessie_bytes_delivered", "nessie_bytes_read", "nessie_catalog_requests", "nessie_checkpoint_writes",
		"nessie_lag_seconds", "nessie_lag_snapshots", "nessie_lost_lineage", "nessie_plan_ns", "nessie_polls", "nessie_read_ns",
		"nessie_rows_acked", "nessie_rows_dropped", "nessie_rows_in_flight", "nessie_rows_read", "nessie_rows_redelivered",
		"nessie_rows_skipped", "nessie_snapshots_acked", "nessie_snapshots_delivered", "nessie_steps",
	}, n.names())
}
