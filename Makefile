# The development commands of Vigil: `make` alone lists them. Tools run at the pinned versions below; nothing is installed.

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
LITESTREAM    := github.com/benbjohnson/litestream/cmd/litestream@v0.5.18
CADDY         := github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
GOVULNCHECK   := golang.org/x/vuln/cmd/govulncheck@v1.8.0
DEADCODE      := golang.org/x/tools/cmd/deadcode@v0.52.0
ACTIONLINT    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# Go fetches the toolchain that go.mod requires. Tools are built with the same one: an older toolchain cannot parse the code.
export GOTOOLCHAIN = auto
TOOL = GOTOOLCHAIN="$$(go env GOVERSION)" go run

PACKAGES = ./...
# The version is the tag without its v; between two tags, also the distance from the last one.
VERSION  = $(patsubst v%,%,$(shell git describe --tags --always --dirty 2>/dev/null || echo unreleased))
FUZZTIME = 30s
TORTURE  = 10m
ROTATIONS = 50
BENCH    = .

# SQLite is its C source where a C compiler links static programs for this machine, else its translation to Go. SQLITE=c or SQLITE=go chooses. The
# targets below build, test and measure with that choice.
SQLITE ?= $(shell test "$$(go env GOOS GOARCH)" = "$$(go env GOHOSTOS GOHOSTARCH)" && \
	printf 'int main(void) { return 0; }' | $$(go env CC) -include stdlib.h -static -x c -o /dev/null - 2>/dev/null && echo c || echo go)
IN_C    = sqlite_in_c,sqlite_stat4,sqlite_omit_load_extension,sqlite_math_functions,no_default_driver,netgo,osusergo
BUILDS  = build bench bench-quick bench-console bench-parts bench-peers torture drills screens
ifeq ($(SQLITE),c)
$(BUILDS) test test-race test-looks: export CGO_ENABLED = 1
$(BUILDS) test test-race test-looks: export GOFLAGS = -tags=$(IN_C)
# The benchmark reads table sizes through dbstat; the measured program is built without it.
bench bench-quick: export GOFLAGS = -tags=$(IN_C),sqlite_dbstat
build: STATIC = -linkmode external -extldflags -static
# With fdatasync SQLite does not write the modification time of a file, which most file systems keep in another place.
ifeq ($(shell go env GOOS),linux)
$(BUILDS) test test-race test-looks: export CGO_CFLAGS = -O2 -g -DHAVE_FDATASYNC
endif
else
$(BUILDS): export CGO_ENABLED = 0
endif

# The folders with tests that match a pattern.
folders = $(shell grep -rlE --include='*_test.go' --exclude-dir=node_modules '$(1)' . | xargs -r -n1 dirname | sort -u)

.DEFAULT_GOAL := help
.PHONY: help run web test test-race test-translated test-looks test-tools test-deploy build check lint licenses release vuln fuzz golden bench screens bench-console bench-quick bench-parts bench-peers torture drills

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: OMIT = --omit=dev
run: web build ## build and start the whole practice in a box on http://127.0.0.1:8090
	./vigil demo

web: ## copy the console's packages from npm to where the next build embeds them, and pack its files
	@if command -v npm >/dev/null; then cd tools/console && { npm ci --silent --no-audit --no-fund --prefer-offline $(OMIT) && node vendor.mjs || echo "npm did not bring the console's packages: the service works, but without the console at /"; }; \
	else echo "no npm here: the service works, but without the console at /"; fi
	@CGO_ENABLED=0 GOFLAGS= go run -C tools/console . ../../pb_public || echo "the console's files are not packed: the console works, with larger files"

test: web ## format and every test (browser tests where Chromium is)
	tools/test.sh

test-race: ## the race detector: packages that start goroutines, and concurrent requests; RACE=all for every package
	tools/test-race.sh $(RACE)

screens: web ## pictures of the console in docs/screens
	VIGIL_SCREENS=docs/screens go test -count=1 -run 'TestConsoleScreens$$' -timeout 15m ./e2e

build: ## build ./vigil, one static file
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION) $(STATIC)" -o vigil .

check: test test-race test-translated test-looks test-tools test-deploy lint ## what CI runs

# The packages that read and write the database through the driver; nightly runs all of them with DRIVEN=./...
DRIVEN = ./collections ./migrations ./internal/sqlite ./internal/ingest ./internal/audit ./internal/triage ./hooks/...
test-translated: ## the tests of packages that use the database, with SQLite's translation to Go
	CGO_ENABLED=0 GOFLAGS= go test -vet=off '-ldflags=-s -w' -timeout 20m $(DRIVEN)

# make test checks each view and dialog in one of three sizes, in turn.
test-looks: web ## every view and dialog of the console in every size and scheme, by axe and by keyboard
	VIGIL_TEST_LOOKS=all go test -count=1 -run 'TestConsoleAccessible$$' -timeout 20m ./e2e

test-tools: web ## the modules under tools/: vet and tests; release has its own drill
	for tool in bench console icd10 wordlint; do (cd tools/$$tool && GOFLAGS= CGO_ENABLED=0 go test -vet=all ./...) || exit 1; done

test-deploy: ## the files in deploy/, read by the tools they are for
	cd deploy/check; export GOFLAGS=; go test -vet=all ./...

# Functions that no program calls and that stay: methods that fmt, slog and json look up, helpers of tests, and three lists that tests compare with.
UNCALLED = \.(Format|LogValue|MarshalJSON)$$|^internal/vigiltest/|^e2e/|: (Kinds|Types|Templates)$$

lint: ## words; golangci-lint by .golangci.yml: mistakes, formats, the import rule; unused functions; the workflows; the contract by Spectral and Redocly
	@GOFLAGS= CGO_ENABLED=0 go run -C tools/wordlint . ../..
	$(TOOL) $(GOLANGCI_LINT) run $(PACKAGES)
	$(TOOL) $(ACTIONLINT) -shellcheck= -pyflakes= .github/workflows/*.yml
	@uncalled="$$($(TOOL) $(DEADCODE) -tags slowcommits ./...)" && if echo "$$uncalled" | grep -vE '$(UNCALLED)'; then echo "no program calls these functions"; exit 1; fi
	@if command -v npm >/dev/null && cd internal/vigiltest/openapi && { npm ls >/dev/null 2>&1 || npm ci --silent --ignore-scripts --no-audit --no-fund --prefer-offline; }; then \
		npx --no-install spectral lint --quiet --fail-severity=warn --ruleset spectral.yaml ../../../routes/openapi.yaml && \
		REDOCLY_SUPPRESS_UPDATE_NOTICE=true npx --no-install redocly lint --config redocly.yaml ../../../routes/openapi.yaml; \
	else echo "no npm here, or it could not fetch packages: Spectral and Redocly do not check the contract"; fi

# A release is reproduced with this toolchain and the C compiler from pip; others produce other bytes. PLATFORMS="linux/amd64" builds one platform.
RELEASE = cd tools/release && GOTOOLCHAIN="$$(sed -n 's/^const toolchain = "\(.*\)"/\1/p' main.go)" GOFLAGS= go run -trimpath -buildvcs=false .

release: web ## dist/: archives for each platform, container image, SBOM, provenance, checksums; reproducible
	$(RELEASE) build -version "$(VERSION)" -tags "$(IN_C)" -out dist $(if $(PLATFORMS),-platforms $(PLATFORMS))

licenses: web ## collect the licenses of all components, with their texts
	$(RELEASE) licenses

vuln: ## known vulnerabilities in called code
	$(TOOL) $(GOVULNCHECK) $(PACKAGES)

fuzz: ## every fuzz target in turn, FUZZTIME (30s) each
	@grep -rHoE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file name; do \
		name="$${name#func }"; folder="$$(dirname "$$file")"; echo "$$folder $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$folder" </dev/null || exit 1; \
	done

golden: ## rewrite the golden files; review the diff
	go test $(call folders,flag\.Bool."update") -update

# The benchmark is a module of its own and starts in the top folder, where it builds Vigil.
BENCHMARK = go build -C tools/bench -o "$${TMPDIR:-/tmp}/vigil-bench" . && "$${TMPDIR:-/tmp}/vigil-bench"

bench: ## Vigil compared with a plain PocketBase, with the targets: a table, docs/bench.csv and docs/bench.svg; a quarter of an hour
	$(BENCHMARK) -out docs

bench-console: web ## the console in a browser with 10,000 patients: first view, frames, bytes
	$(BENCHMARK) -paths console

bench-quick: ## a short benchmark, under three minutes, without files
	$(BENCHMARK) -quick

bench-peers: ## Vigil compared with a real HAPI FHIR server (Java 17, Maven; else skipped): a table, docs/bench-peers.csv and .svg; some minutes on a quiet machine
	$(BENCHMARK) -peers -out docs

torture: ## kill the service at random moments under load for TORTURE (10m), in ROTATIONS (50) key rotations, and 20 times while a client follows 100,000 changes; fail its disk and its peers; overload its listeners; or RUNS=20 short runs with three kills each, with SQLite in C and translated
ifdef RUNS
	tools/torture.sh $(RUNS) $(IN_C) $(if $(filter go,$(SQLITE)),no-c)
else
	TORTURE=$(TORTURE) ROTATIONS=$(ROTATIONS) CHANGES=100000 KILLS=20 go test -run '^(TestTorture|TestChangesThroughKills|TestRotationTorture|TestDiskFails|TestHangingReceivers|TestHalfSentRequests|TestConcurrentSignIns|TestManyStreams)$$' -v -count=1 -timeout 60m ./e2e
endif

# Litestream and Caddy are built once, into the user's cache.
drills: ## lose, move and upgrade practices, with the real Litestream and Caddy; run the units of deploy/ under a systemd (root); deliver to a real HAPI FHIR server through faults and kills, and a thousand readings to each kind of EMR; read deploy/ with its tools; make a release twice; generate clients in Python and Go; run docs/integrating.md; clone and follow docs/quickstart.md and docs/three-practices.md
	@set -ex; tools="$${XDG_CACHE_HOME:-$$HOME/.cache}/vigil-tools"; \
	GOBIN="$$tools" CGO_ENABLED=0 go install $(LITESTREAM); GOBIN="$$tools" CGO_ENABLED=0 go install $(CADDY); \
	export PATH="$$tools:$$PATH" VIGIL_TEST_CLONE=1 VIGIL_TEST_HAPI=1 VIGIL_TEST_GENERATED=1 VIGIL_TEST_CELLS=20 VIGIL_TEST_UNITS=1; \
	go test -count=1 -v -timeout 40m -run '^(TestBackup|TestReplica|TestThreeCells|TestThreePractices|TestUnits|TestWaves|TestQuickstart|TestHAPI|TestGeneratedClient|TestIntegrating)' ./e2e; \
	VIGIL_TEST_ROUNDS=all go test -count=1 -v -timeout 40m -run '^(TestSandboxProfiles|TestMonthDocuments|TestDeliveryProfiles)$$' ./internal/emr ./e2e; \
	export GOFLAGS=; (cd deploy/check; go test -count=1 -v ./...); cd tools/release; VIGIL_TEST_RELEASE=1 go test -count=1 -v -timeout 60m ./...

bench-parts: ## Go benchmarks with allocations; BENCH chooses by name
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(call folders,^func Benchmark)
