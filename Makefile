# SPDX-License-Identifier: Apache-2.0

GO      ?= go
BINARY  := rpk-nessie
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
DATE    := $(shell git show -s --format=%cI 2>/dev/null)
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION)) $(if $(DATE),-X main.dateBuilt=$(DATE))

# Packages that start servers run JVMs of half a gigabyte each: no more than two at once.
TESTFLAGS ?= -shuffle=on -timeout=40m -p=2

# What runs without real servers, for the race detector and the soak test.
UNIT := $$($(GO) list ./... | grep -v /tests/) ./tests/corpus

# The packages that the input consists of.
INPUT := . ./cache/... ./catalog/... ./lineage/... ./scan/...

# Kafka, Redis, PostgreSQL and the object stores take minutes of their own.
CONNECTORS := ./tests/kafka ./tests/connectors

SOAK_COUNT ?= 20

.PHONY: help build docs demo test connectors unit race lint fmt bench microbench soak servers clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without Go's own stamp, which fails where git won't read the checkout: another user's, as in a container's volume.
build: ## Build ./rpk-nessie
	$(GO) build -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BINARY) ./cmd/rpk-nessie

docs: build ## Write the reference in docs/reference from what the binary says of itself
	./$(BINARY) list --format json-full | $(GO) run ./docs/generate docs/reference

demo: build ## Show what it does: an in-memory Nessie, a table, a pipeline, a restart
	./$(BINARY) demo

servers: ## Fetch Nessie's jars and a Java for the tests
	scripts/fetch-servers

test: servers ## Test everything on a real Nessie, but the binary's connectors on theirs
	$(GO) test $(TESTFLAGS) $$($(GO) list ./... | grep -vE '/tests/(kafka|connectors)$$')

connectors: ## Test the binary's connectors on real servers
	scripts/fetch-servers connectors
	$(GO) test -p=1 -timeout=30m $(CONNECTORS)

unit: ## Test what needs no server
	$(GO) test $(TESTFLAGS) $(UNIT)

race: ## Test the packages of the input with the race detector; -short draws a fifth of the random cases
	$(GO) test -race -short $(TESTFLAGS) $(INPUT)

lint: ## Check format and style
	@unformatted=$$(git ls-files -z '*.go' | xargs -0 scripts/tool gofumpt -l); \
	  if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	scripts/tool golangci-lint run --allow-serial-runners

fmt: ## Format
	git ls-files -z '*.go' | xargs -0 scripts/tool gofumpt -w

BENCH_RESULTS ?= dist/bench.md

bench: build ## Measure speed beside other programs, in ten minutes; the results go to dist/bench.md
	@mkdir -p dist $(dir $(BENCH_RESULTS))
	$(GO) build -buildvcs=false -o dist/bench ./bench
	cache=$$(bench/prepare) && dist/bench run "$$cache" -binary "$(CURDIR)/$(BINARY)" -out $(BENCH_RESULTS) $(BENCH_FLAGS)

microbench: ## Run the Go benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

soak: ## 200 kills under faults, 10,000 random histories, 3,600 replays, a million rows into a real Kafka; then the tests without servers again and again, with the race detector
	scripts/fetch-servers connectors
	$(GO) test -count=1 -timeout=60m -v ./tests/chaos -kills 200 -seed=$$(date +%s)
	$(GO) test -count=1 -timeout=60m -run TestKills ./tests/follow -seed=$$(date +%s)
	$(GO) test -count=1 -timeout=60m ./tests/model -histories=10000 -lanes=24 -rapid.seed=$$(date +%s)
	$(GO) test -count=1 -timeout=60m ./tests/replay -replays=3600 -rapid.seed=$$(date +%s)
	RPK_NESSIE_KAFKA_ROWS=1000000 $(GO) test -count=1 -timeout=60m -run TestEveryRow ./tests/kafka
	$(GO) test -count=1 -timeout=60m -run TestPostgresEquals ./tests/connectors -seed=$$(date +%s)
	for _ in $$(seq $(SOAK_COUNT)); do $(GO) test -race -shuffle=on -timeout=0 ./scan -rapid.seed=$$(date +%s) || exit 1; done
	$(GO) test -race -shuffle=on -timeout=0 -p=2 -count=$(SOAK_COUNT) $(UNIT)

clean: ## Remove what was built here; the cache folder stays
	rm -rf $(BINARY) dist
