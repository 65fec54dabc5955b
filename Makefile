# Everything one does to Vigil: `make` alone lists the targets. Tools run at the versions below; nothing is installed.

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
LITESTREAM    := github.com/benbjohnson/litestream/cmd/litestream@v0.5.18
CADDY         := github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
GOVULNCHECK   := golang.org/x/vuln/cmd/govulncheck@v1.8.0
DEADCODE      := golang.org/x/tools/cmd/deadcode@v0.52.0
ACTIONLINT    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# Go fetches the toolchain that go.mod asks for. Tools are built with that same toolchain: an older one cannot read our code.
export GOTOOLCHAIN = auto
TOOL = GOTOOLCHAIN="$$(go env GOVERSION)" go run

# The packages whose tests take longest go first, so that no core waits for them at the end.
PACKAGES = ./routes ./internal/emr ./...
# Tests from outside, which mostly wait.
OUTSIDE  = ./e2e
# The tag's, without its v; between two tags also how far it is from the last one.
VERSION  = $(patsubst v%,%,$(shell git describe --tags --always --dirty 2>/dev/null || echo unreleased))
FUZZTIME = 30s
TORTURE  = 10m
ROTATIONS = 50
BENCH    = .

# SQLite is what its authors wrote, in C, where a C compiler links static programs for the machine it runs on, else its translation to Go: SQLITE=go
# or SQLITE=c says which. Everything that is built, tested and measured by what stands below is built so.
SQLITE ?= $(shell test "$$(go env GOOS GOARCH)" = "$$(go env GOHOSTOS GOHOSTARCH)" && \
	printf 'int main(void) { return 0; }' | $$(go env CC) -include stdlib.h -static -x c -o /dev/null - 2>/dev/null && echo c || echo go)
IN_C    = sqlite_in_c,sqlite_stat4,sqlite_omit_load_extension,sqlite_math_functions,no_default_driver,netgo,osusergo
BUILDS  = build bench bench-quick bench-console bench-parts bench-peers torture drills screens
ifeq ($(SQLITE),c)
$(BUILDS) test test-looks: export CGO_ENABLED = 1
$(BUILDS) test test-looks: export GOFLAGS = -tags=$(IN_C)
# What asks how large a table is; the program that is measured is built without it.
bench bench-quick: export GOFLAGS = -tags=$(IN_C),sqlite_dbstat
build: STATIC = -linkmode external -extldflags -static
# Of a file that it waits for, SQLite leaves out the time of the last change, which most file systems would write elsewhere.
ifeq ($(shell go env GOOS),linux)
$(BUILDS) test test-looks: export CGO_CFLAGS = -O2 -g -DHAVE_FDATASYNC
endif
else
$(BUILDS): export CGO_ENABLED = 0
endif

# The folders whose tests match a pattern.
folders = $(shell grep -rlE --include='*_test.go' --exclude-dir=node_modules '$(1)' . | xargs -r -n1 dirname | sort -u)

.DEFAULT_GOAL := help
.PHONY: help run web test test-translated test-looks test-tools test-deploy build check lint licenses release vuln fuzz golden bench screens bench-console bench-quick bench-parts bench-peers torture drills

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: OMIT = --omit=dev
run: web build ## build and start the whole practice in a box on http://127.0.0.1:8090
	./vigil demo

web: ## copy the console's packages from npm to where the next build embeds them, and pack its files
	@if command -v npm >/dev/null; then cd tools/console && { npm ci --silent --no-audit --no-fund --prefer-offline $(OMIT) && node vendor.mjs || echo "npm did not bring the console's packages: the service is whole, but without the console at /"; }; \
	else echo "no npm here: the service is whole, but without the console at /"; fi
	@CGO_ENABLED=0 GOFLAGS= go run -C tools/console . ../../pb_public || echo "the console's files are not packed: it works, and is heavier"

# What the race detector need not watch takes half of the time under it: SQLite, C put into Go that keeps its memory outside Go's, where the
# detector does not look; what reads text and makes hashes of it. Everything else is watched, and so is whatever uses
# sync.Map or another generic of sync: its copy, compiled there, may become that of the whole program.
# Without the experiment such a package would hide from the detector that memory is used anew, and it would report races that are none.
UNWATCHED = modernc.org/sqlite/lib modernc.org/libc modernc.org/memory regexp regexp/syntax encoding/json/jsontext encoding/json/internal/... \
	golang.org/x/crypto/blowfish github.com/santhosh-tekuri/jsonschema/v6/... github.com/andybalholm/brotli/... github.com/evanw/esbuild/...
# Neither are pointers that libraries make of numbers (checkptr), which is no race.
RACE = -race -ldflags='-s -w' -gcflags=all=-d=checkptr=0 $(foreach package,$(UNWATCHED),-gcflags=$(package)=-race=false)
EXPERIMENT = nosizespecializedmalloc

# The detector makes collecting garbage dear, and tests make little that lasts: they may keep more of it, some hundred MB.
GARBAGE = 400

# A race build needs a C compiler that links a program, which is more than one that exists. Tests from outside have nothing for the detector: the
# program that they drive is built as it is released. They run beside the others, which make way for them: a browser that
# waits for a core is what takes longest.
test: web ## all that must pass: vet, format, every test (race detector where C compiles, browser where Chromium is)
	@unformatted="$$("$$(go env GOROOT)/bin/gofmt" -l .)"; \
	if [ -n "$$unformatted" ]; then printf 'gofmt would change:\n%s\n' "$$unformatted"; exit 1; fi
	@command -v chromium >/dev/null && command -v node >/dev/null || echo "no chromium or no node here: the browser tests skip themselves"
	@if printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $$(go env CC) -x c -o /dev/null - 2>/dev/null; then \
		export CGO_ENABLED=1; if GOEXPERIMENT=$(EXPERIMENT) go env GOEXPERIMENT >/dev/null 2>&1; then set -- GOEXPERIMENT=$(EXPERIMENT) go test $(RACE); else set -- go test -race; fi; \
	else \
		export CGO_ENABLED=0; set -- go test; echo "no working C compiler here: testing without the race detector"; \
	fi; \
	set -ex; said="$$(mktemp)"; go test -vet=all -timeout 45m $(OUTSIDE) >"$$said" 2>&1 & outside=$$!; \
	set -ex; nice -n 10 env GOGC=$(GARBAGE) "$$@" -vet=all -timeout 30m $$(go list $(PACKAGES) | grep -v "/$(notdir $(OUTSIDE))$$") || { kill $$outside; exit 1; }; \
	wait $$outside || { cat "$$said"; exit 1; }; cat "$$said"; rm "$$said"

screens: web ## pictures of the console in docs/screens
	VIGIL_SCREENS=docs/screens go test -count=1 -run 'TestConsoleScreens$$' -timeout 15m ./e2e

build: ## build ./vigil, one static file
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION) $(STATIC)" -o vigil .

check: test test-translated test-looks test-tools test-deploy lint ## what CI runs

# The tests that try fewer random cases under the race detector, which this runs without it, in full.
ROUNDS = $(shell grep -rl --include='*_test.go' --exclude-dir=node_modules 'vigiltest\.Rounds\b' . | xargs -r awk '/^func Test/ {name = $$2; sub("[^A-Za-z0-9_].*", "", name)} /vigiltest\.Rounds/ {print name}' | sort -u)
test-translated: web ## every test of Go without the race detector, with SQLite's translation to Go; where make test had that, those alone that tried fewer cases
ifeq ($(SQLITE),c)
	CGO_ENABLED=0 go test -vet=off -timeout 20m -skip '^TestConsole' $(PACKAGES)
else
	CGO_ENABLED=0 go test -timeout 20m -run "^($$(echo $(ROUNDS) | tr ' ' '|'))\$$" $(call folders,vigiltest\.Rounds\b)
endif

# make test looks at each view and dialog in one of three sizes, in turn.
test-looks: web ## every view and dialog of the console in every size and scheme, by axe and by keyboard
	VIGIL_TEST_LOOKS=all go test -count=1 -run 'TestConsoleAccessible$$' -timeout 20m ./e2e

test-tools: web ## the modules under tools/: vet and tests; release has its own drill
	for tool in bench console icd10 wordlint; do (cd tools/$$tool && GOFLAGS= CGO_ENABLED=0 go test -vet=all ./...) || exit 1; done

test-deploy: ## what stands in deploy/, read by the tools that it is for
	cd deploy/check; export GOFLAGS=; go test -vet=all ./...

# What no program calls may still stand: a guard that fmt, slog and json look for, what tests are written with, and the three lists that the
# tests of the whole service hold it against.
UNCALLED = \.(Format|LogValue|MarshalJSON)$$|^internal/vigiltest/|: (Kinds|Types|Templates)$$

lint: ## golangci-lint by .golangci.yml: mistakes, formats, the import rule; functions that nobody calls; the workflows; the contract by Spectral and Redocly
	-@GOFLAGS= CGO_ENABLED=0 go run -C tools/wordlint . ../.. # a warning until every package has plain words
	$(TOOL) $(GOLANGCI_LINT) run $(PACKAGES)
	$(TOOL) $(ACTIONLINT) -shellcheck= -pyflakes= .github/workflows/*.yml
	@uncalled="$$($(TOOL) $(DEADCODE) -tags slowcommits ./...)" && if echo "$$uncalled" | grep -vE '$(UNCALLED)'; then echo "nobody calls these"; exit 1; fi
	@if command -v npm >/dev/null && cd internal/vigiltest/openapi && { npm ls >/dev/null 2>&1 || npm ci --silent --ignore-scripts --no-audit --no-fund --prefer-offline; }; then \
		npx --no-install spectral lint --quiet --fail-severity=warn --ruleset spectral.yaml ../../../routes/openapi.yaml && \
		REDOCLY_SUPPRESS_UPDATE_NOTICE=true npx --no-install redocly lint --config redocly.yaml ../../../routes/openapi.yaml; \
	else echo "no npm here, or nothing that it could bring: Spectral and Redocly do not read the contract"; fi

# Whoever makes a release anew takes this toolchain, and the C compiler that pip brings: others make other bytes. PLATFORMS="linux/amd64" makes it for that one alone.
RELEASE = cd tools/release && GOTOOLCHAIN="$$(sed -n 's/^const toolchain = "\(.*\)"/\1/p' main.go)" GOFLAGS= go run -trimpath -buildvcs=false .

release: web ## dist/: archives for each platform, container image, list of parts, provenance, checksums; the same bytes whenever and wherever
	$(RELEASE) build -version "$(VERSION)" -tags "$(IN_C)" -out dist $(if $(PLATFORMS),-platforms $(PLATFORMS))

licenses: web ## gather anew whose work is in the program, under which license, with the texts
	$(RELEASE) licenses

vuln: ## known vulnerabilities in what we call
	$(TOOL) $(GOVULNCHECK) $(PACKAGES)

fuzz: ## every fuzz target in turn, FUZZTIME (30s) each
	@grep -rHoE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file name; do \
		name="$${name#func }"; folder="$$(dirname "$$file")"; echo "$$folder $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$folder" </dev/null || exit 1; \
	done

golden: ## rewrite the golden files, to be read in the diff
	go test $(call folders,flag\.Bool."update") -update

# The benchmark is a module of its own and starts in the top folder, where it builds Vigil.
BENCHMARK = go build -C tools/bench -o "$${TMPDIR:-/tmp}/vigil-bench" . && "$${TMPDIR:-/tmp}/vigil-bench"

bench: ## Vigil beside a plain PocketBase, with the targets: a table, docs/bench.csv and docs/bench.svg; a quarter of an hour
	$(BENCHMARK) -out docs

bench-console: web ## the console in a browser with 10,000 patients: first view, frames, bytes
	$(BENCHMARK) -paths console

bench-quick: ## the same in short, under three minutes, leaving no files
	$(BENCHMARK) -quick

bench-peers: ## Vigil beside a real HAPI FHIR server (Java 17, Maven; else skipped): a table, docs/bench-peers.csv and .svg; some minutes on a quiet machine
	$(BENCHMARK) -peers -out docs

# A line for each run, and everything that it said where it failed. Without all of them the target fails.
EACH_RUN = awk -v build="$$build" -v runs=$(RUNS) '{ said = said $$0 "\n" } \
	/ kills; acknowledged: / { sub(/.*[0-9]: /, ""); figures = $$0 } \
	/^--- / { n++; print build ", run " n ": " $$2 " " figures " " $$NF; if ($$2 == "PASS:") passed++; else printf "%s", said; said = figures = ""; fflush() } \
	END { if (passed != runs) { printf "%s", said; print build ": " passed + 0 " of " runs " runs passed"; exit 1 } }'

torture: ## kill the service at random moments under load for TORTURE (10m), in ROTATIONS (50) rotations of its keys, and 20 times while somebody follows 100,000 changes; fail its disk and its neighbours; press at its doors; or RUNS=20 short runs with three kills each, with SQLite in C and translated
ifdef RUNS
	@failed=0; for build in "SQLite in C" "SQLite translated"; do case "$$build" in \
		*C) if [ $(SQLITE) != c ]; then echo "$$build: not run, no C compiler links static programs here, or it is not wanted"; continue; fi; set -- CGO_ENABLED=1 GOFLAGS=-tags=$(IN_C);; \
		*) set -- CGO_ENABLED=0 GOFLAGS=;; esac; \
		env "$$@" TORTURE= go test -run '^TestTorture$$' -count=$(RUNS) -v -timeout 0 ./e2e 2>&1 | $(EACH_RUN) || failed=1; done; exit $$failed
else
	TORTURE=$(TORTURE) ROTATIONS=$(ROTATIONS) CHANGES=100000 KILLS=20 go test -run '^(TestTorture|TestChangesThroughKills|TestRotationTorture|TestDiskFails|TestOthersHang|TestHalfSentRequests|TestManySignIns|TestManyStreams)$$' -v -count=1 -timeout 60m ./e2e
endif

# Litestream and Caddy are built once, into the user's cache.
drills: ## lose, move and upgrade practices, with the real Litestream and Caddy; run the units of deploy/ under a systemd (root); deliver to a real HAPI FHIR server through faults and kills; read deploy/ with its tools; make a release twice; generate clients in Python and Go; run docs/integrating.md; clone and walk docs/quickstart.md and docs/three-practices.md
	@set -ex; tools="$${XDG_CACHE_HOME:-$$HOME/.cache}/vigil-tools"; \
	GOBIN="$$tools" CGO_ENABLED=0 go install $(LITESTREAM); GOBIN="$$tools" CGO_ENABLED=0 go install $(CADDY); \
	export PATH="$$tools:$$PATH" VIGIL_TEST_CLONE=1 VIGIL_TEST_HAPI=1 VIGIL_TEST_GENERATED=1 VIGIL_TEST_CELLS=20 VIGIL_TEST_UNITS=1; \
	go test -count=1 -v -timeout 40m -run '^(TestBackup|TestReplica|TestThreeCells|TestThreePractices|TestUnits|TestWaves|TestQuickstart|TestHAPI|TestGeneratedClient|TestIntegrating)' ./e2e; \
	export GOFLAGS=; (cd deploy/check; go test -count=1 -v ./...); cd tools/release; VIGIL_TEST_RELEASE=1 go test -count=1 -v -timeout 60m ./...

bench-parts: ## Go benchmarks with allocations; BENCH chooses by name
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(call folders,^func Benchmark)
