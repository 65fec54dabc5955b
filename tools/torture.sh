#!/bin/sh
# torture.sh RUNS TAGS [no-c]: runs TestTorture RUNS times with SQLite in C, built with TAGS, and RUNS times with its translation to Go. Each run
# prints one line; a run that fails prints all of its output. The exit status is 1 unless every run passes.
runs="$1" tags="$2" failed=0

# each reads the output of `go test -v` and prints the line of each run.
each() {
	awk -v build="$1" -v runs="$runs" '{ output = output $0 "\n" }
		/ kills; acknowledged: / { sub(/.*[0-9]: /, ""); figures = $0 }
		/^--- / { n++; print build ", run " n ": " $2 " " figures " " $NF; if ($2 == "PASS:") passed++; else printf "%s", output; output = figures = ""; fflush() }
		END { if (passed != runs) { printf "%s", output; print build ": " passed + 0 " of " runs " runs passed"; exit 1 } }'
}

torture() { env "$@" TORTURE= go test -run '^TestTorture$' -count="$runs" -v -timeout 0 ./e2e 2>&1; }

if [ "${3-}" = no-c ]; then
	echo "SQLite in C: not run, no C compiler links static programs here, or SQLITE=go was set"
else
	torture CGO_ENABLED=1 GOFLAGS=-tags="$tags" | each "SQLite in C" || failed=1
fi
torture CGO_ENABLED=0 GOFLAGS= | each "SQLite translated" || failed=1
exit $failed
