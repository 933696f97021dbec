// SPDX-License-Identifier: Apache-2.0

// Package cache keeps an input's place: what of a table was acknowledged, and
// that in a Benthos cache so that a restart goes on there.
//
//	output --ack--> Tracker --newest acknowledged prefix--> Writer --> Store --> KV (a Benthos cache)
//
// Checkpoint is the value that is stored, Encode and Decode are its codec. The
// Tracker decides how far it may move, the Writer moves it off the path that
// delivery takes, the Store reads and claims it, and DeriveKey names it. The
// cache component nessie_durable_file is a store that survives a crash.
package cache
