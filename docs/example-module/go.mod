module example.com/stream

go 1.26.0

require (
	github.com/redpanda-data/benthos/v4 v4.60.0
	github.com/rpk-nessie/rpk-nessie v0.0.0
)

// Only inside this repository, so that its tests build the example with the source beside it. Leave it out of yours.
replace github.com/rpk-nessie/rpk-nessie => ../..
