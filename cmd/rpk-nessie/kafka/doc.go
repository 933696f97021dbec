// SPDX-License-Identifier: Apache-2.0

// Package kafka registers the kafka_franz input and output, which speak to Kafka through franz-go. Fields have the names
// and meanings that users of Redpanda Connect know.
package kafka
