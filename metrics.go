// SPDX-License-Identifier: Apache-2.0

package nessie

import (
	"strconv"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/rpk-nessie/rpk-nessie/cache"
	"github.com/rpk-nessie/rpk-nessie/lineage"
)

// metrics are the input's own, beside those that Benthos keeps for every
// input. All carry the table; Benthos adds label and path.
type metrics struct {
	table string

	rowsRead, rowsAcked, rowsRedelivered, rowsDropped *service.MetricCounter
	rowsSkipped                                       *service.MetricCounter // reason
	bytesRead, bytesDelivered                         *service.MetricCounter
	snapshotsDelivered, snapshotsAcked                *service.MetricCounter
	polls                                             *service.MetricCounter // result
	requests                                          *service.MetricCounter // call, status
	steps                                             *service.MetricCounter // found_by
	lostLineage                                       *service.MetricCounter // policy
	checkpointWrites                                  *service.MetricCounter // result

	lagSnapshots, lagSeconds, rowsInFlight, ackedSequence *service.MetricGauge

	plan, read *service.MetricTimer
}

const (
	pollUnchanged = "unchanged"
	pollChanged   = "changed"
	pollFailed    = "failed"
)

func newMetrics(m *service.Metrics, table string) *metrics {
	all := &metrics{
		table:              table,
		rowsRead:           m.NewCounter("nessie_rows_read", "table"),
		rowsAcked:          m.NewCounter("nessie_rows_acked", "table"),
		rowsRedelivered:    m.NewCounter("nessie_rows_redelivered", "table"),
		rowsDropped:        m.NewCounter("nessie_rows_dropped", "table"),
		rowsSkipped:        m.NewCounter("nessie_rows_skipped", "table", "reason"),
		bytesRead:          m.NewCounter("nessie_bytes_read", "table"),
		bytesDelivered:     m.NewCounter("nessie_bytes_delivered", "table"),
		snapshotsDelivered: m.NewCounter("nessie_snapshots_delivered", "table"),
		snapshotsAcked:     m.NewCounter("nessie_snapshots_acked", "table"),
		polls:              m.NewCounter("nessie_polls", "table", "result"),
		requests:           m.NewCounter("nessie_catalog_requests", "table", "call", "status"),
		steps:              m.NewCounter("nessie_steps", "table", "found_by"),
		lostLineage:        m.NewCounter("nessie_lost_lineage", "table", "policy"),
		checkpointWrites:   m.NewCounter("nessie_checkpoint_writes", "table", "result"),
		lagSnapshots:       m.NewGauge("nessie_lag_snapshots", "table"),
		lagSeconds:         m.NewGauge("nessie_lag_seconds", "table"),
		rowsInFlight:       m.NewGauge("nessie_rows_in_flight", "table"),
		ackedSequence:      m.NewGauge("nessie_acked_sequence", "table"),
		plan:               m.NewTimer("nessie_plan_ns", "table"),
		read:               m.NewTimer("nessie_read_ns", "table"),
	}
	all.show()
	return all
}

// show lets the counters of what is rare begin at zero: a rate over a series that begins at one does not see that one.
func (m *metrics) show() {
	m.rowsRedelivered.Incr(0, m.table)
	m.rowsDropped.Incr(0, m.table)
	for _, reason := range []string{niFieldOnOverwrite, niFieldOnDelete} {
		m.rowsSkipped.Incr(0, m.table, reason)
	}
	for _, result := range []string{pollUnchanged, pollChanged, pollFailed} {
		m.polls.Incr(0, m.table, result)
	}
	for _, policy := range []lineage.OnLost{lineage.LostStart, lineage.LostAncestor, lineage.LostBridge, lineage.LostTableScan} {
		m.lostLineage.Incr(0, m.table, string(policy))
	}
	for _, result := range []string{cache.ResultWritten, cache.ResultFailed} {
		m.checkpointWrites.Incr(0, m.table, result)
	}
}

func (m *metrics) request(call string, status int) {
	text := "error"
	if status != 0 {
		text = strconv.Itoa(status)
	}
	m.requests.Incr(1, m.table, call, text)
}

func (m *metrics) poll(result string) { m.polls.Incr(1, m.table, result) }

func (m *metrics) delivered(rows int, bytes int64, last bool) {
	m.rowsRead.Incr(int64(rows), m.table)
	m.bytesDelivered.Incr(bytes, m.table)
	if last {
		m.snapshotsDelivered.Incr(1, m.table)
	}
}

func (m *metrics) planned(start time.Time) {
	m.plan.Timing(time.Since(start).Nanoseconds(), m.table)
}
