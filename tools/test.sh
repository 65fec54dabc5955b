#!/bin/sh
# Checks the format, then tests every package; make lint vets them. The tests of the built program (e2e) mostly wait, so they run beside the others,
# which give way to them: a browser that waits for a core takes longest. At the end it prints the packages that took longest beside their budgets,
# in seconds.
set -eu
cd "$(dirname "$0")/.."

unformatted="$("$(go env GOROOT)/bin/gofmt" -l .)"
if [ -n "$unformatted" ]; then printf 'gofmt would change:\n%s\n' "$unformatted"; exit 1; fi
command -v chromium >/dev/null && command -v node >/dev/null || echo "no chromium or no node here: the browser tests are skipped"

out="$(mktemp -d)"
go test -vet=off '-ldflags=-s -w' -timeout 45m ./e2e >"$out/e2e" 2>&1 & e2e=$!
trap 'kill $e2e 2>/dev/null || true; rm -rf "$out"' EXIT
{ nice -n 10 go test -vet=off '-ldflags=-s -w' -timeout 30m $(go list ./routes ./internal/emr ./... | grep -v '/e2e$') 2>&1 && : >"$out/passed"; } | tee "$out/rest"
status=0; wait $e2e || status=$?
cat "$out/e2e"
[ -e "$out/passed" ] || status=1

cat "$out/rest" "$out/e2e" | awk '
	BEGIN { budget["e2e"] = 420; budget["routes"] = 180 }
	$1 == "ok" && $3 ~ /s$/ { name = $2; sub(/.*github.com\/vigilhealth\/vigil\//, "", name); seconds = $3 + 0; most = name in budget ? budget[name] : 60
		if (seconds >= 10) printf "%7.1f of %3d s  %s%s\n", seconds, most, name, (seconds > most ? "  over its budget" : "") }' | sort -rn
exit $status
