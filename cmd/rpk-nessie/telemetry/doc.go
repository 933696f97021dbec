// SPDX-License-Identifier: Apache-2.0

// Package telemetry registers what lets a pipeline be watched: the prometheus metrics exporter and the
// open_telemetry_collector tracer. Fields have the names and meanings that users of Redpanda Connect know.
package telemetry
