# The two commands of a fresh machine with Go and Python 3: make demo, make test.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Pinned in tools/go.mod; built once, then in Go's build cache.
TOOL := go tool -modfile=tools/go.mod
FETCH := python3 integration/servers/fetch.py

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# What the integration tests run against, and where they are: the tests in files with
# that tag. Their packages run one after the other, since each starts servers of its own.
SERVERS ?= java spark-4.2 spark-4.0 spark-3.5 kafka
INTEGRATION_FILES = $(shell grep -rl --include='*_test.go' '^//go:build.*integration' .)
INTEGRATION_PACKAGES = $(sort $(dir $(INTEGRATION_FILES)))
INTEGRATION_TESTS = $(shell grep -oh '^func Test[A-Za-z0-9_]*' $(INTEGRATION_FILES) | cut -d' ' -f2 | sort -u | paste -sd'|')
INTEGRATION_TIMEOUT ?= 20m
SEEDS ?= 1000
SEED ?=
DEMO_SECONDS ?=
export DEMO_SECONDS

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/bridge
	go build -trimpath -ldflags '-X main.linkedVersion=$(VERSION)' -o bin/bridge ./cmd/bridge

.PHONY: test
test: unit schedules integration ## run all tests: unit, schedules of faults, then against the real servers

.PHONY: unit
unit: ## run the unit tests, with the race detector and in random order
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -race -shuffle=on -timeout 10m ./...

# Without the race detector, under which the unit tests play only a few of them.
.PHONY: schedules
schedules: ## play 200 schedules of faults against the bridge
	go test ./internal/bridge -run TestSchedules -count=1 -timeout 20m

.PHONY: integration
integration: servers ## run the tests against real Spark, Kafka and NATS
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -tags integration -p 1 -count=1 -timeout $(INTEGRATION_TIMEOUT) -run '^($(INTEGRATION_TESTS))$$' $(INTEGRATION_PACKAGES)

.PHONY: servers
servers: ## fetch the real servers into the cache (once)
	$(FETCH) $(SERVERS)

# Not by go run, which calls an end by Ctrl-C an error.
.PHONY: demo
demo: ## show it: real Spark, streaming queries, the bridge, events (DEMO_SECONDS=n ends it)
	$(FETCH) java spark-4.2
	go build -o bin/demo ./integration/demo
	bin/demo

.PHONY: soak
soak: ## play SEEDS schedules of faults (1000); SEED=n plays one and shows what happens
	go test ./internal/bridge -run TestSchedules -count=1 -timeout 60m $(if $(SEED),-seed $(SEED) -v,-seeds $(SEEDS))

.PHONY: bench
bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: lint
lint: ## check style and the dependency rules
	$(TOOL) golangci-lint config verify
	$(TOOL) golangci-lint run

.PHONY: fmt
fmt: ## format the code
	$(TOOL) golangci-lint fmt

.PHONY: generate
generate: ## make connect/sparkpb from connect/proto
	cd connect/proto && go tool -modfile=../../tools/go.mod buf lint && go tool -modfile=../../tools/go.mod buf generate

.PHONY: checkgenerate
checkgenerate: generate ## fail if the generated code is not what generate makes
	@changes=$$(git status --porcelain -- connect/proto connect/sparkpb); \
	if [ -n "$$changes" ]; then \
	  echo "The generated code differs from what is committed: run make generate and commit it." >&2; \
	  echo "$$changes" >&2; git --no-pager diff --stat -- connect/proto connect/sparkpb >&2; exit 1; \
	fi

.PHONY: clean
clean: ## remove what was built; fetched servers stay in the cache
	rm -rf bin
	go clean -testcache
