#!/bin/sh
# Runs tests under Go's race detector: the packages that start goroutines, and of the API those tests that make concurrent requests. With "all" it
# runs every package. e2e is left out, because it drives the program as it is released.
set -eu
cd "$(dirname "$0")/.."

printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $(go env CC) -x c -o /dev/null - 2>/dev/null ||
	{ echo "no working C compiler here: the race detector cannot be linked"; exit 0; }

# Packages that the detector need not watch take half of the time under it: SQLite translated to Go, which keeps its memory outside Go's, and what
# only parses or hashes. Packages with sync.Map or another generic of sync are watched, because their copy may become that of the whole program.
unwatched="modernc.org/sqlite/lib modernc.org/libc modernc.org/memory regexp regexp/syntax encoding/json/jsontext encoding/json/internal/...
	golang.org/x/crypto/blowfish github.com/santhosh-tekuri/jsonschema/v6/... github.com/andybalholm/brotli/... github.com/evanw/esbuild/..."
# Nor are the pointers checked that libraries make of numbers (checkptr), which are no races.
all="${1-}"
set -- -race '-ldflags=-s -w' -gcflags=all=-d=checkptr=0
for package in $unwatched; do set -- "$@" "-gcflags=$package=-race=false"; done
# Without this experiment an unwatched package would hide reused memory from the detector, which would then report races that do not exist.
if GOEXPERIMENT=nosizespecializedmalloc go env GOEXPERIMENT >/dev/null 2>&1; then export GOEXPERIMENT=nosizespecializedmalloc; fi
# The detector makes garbage collection expensive, and tests keep little: let them use some hundred MB more.
export CGO_ENABLED=1 GOGC=400

if [ "$all" = all ]; then exec go test "$@" -timeout 60m $(go list ./... | grep -v '/e2e$'); fi
concurrent='Concurren|AtOnce|Simultaneous|Parallel|Race'
watched="$(grep -lE '\bgo func|^[[:space:]]+go [a-z]|\.Go\(|sync\.(Mutex|RWMutex|WaitGroup)|atomic\.|make\(chan' \
	$(git ls-files 'internal/*.go' 'collections/*.go' 'jobs/*.go' | grep -v _test.go) | xargs -n1 dirname | sort -u | sed 's|^|./|')"
go test "$@" -timeout 30m $watched
go test "$@" -timeout 30m -run "$concurrent" ./routes ./hooks
