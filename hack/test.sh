#!/usr/bin/env bash
# Runs all tests. Packages are tested with the race detector, and those whose
# code and inputs did not change since they passed are not tested again. The
# tests of the whole program run beside them, always and without the detector:
# they wait for machines more than they compute, and are to see the program that
# users get.
#
#	hack/test.sh [flags for go test]
set -euo pipefail
cd "$(dirname "$0")/.."

start=$SECONDS
log=$(mktemp)
CGO_ENABLED=0 go test -count=1 -shuffle=on -timeout 60m "$@" ./test/e2e >"$log" 2>&1 &
program=$!
trap 'kill "$program" 2>/dev/null || true; rm -f "$log"' EXIT

# One package at a time, as the program is tested too; what they need is
# compiled by all cores before.
failed=
packages=$(go list ./... | grep -v '/test/e2e$')
compiled=$(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v '/test/e2e$')
export CGO_ENABLED=1
# shellcheck disable=SC2086 # one argument for each package
{ go build -race $compiled && go test -race -p 1 -timeout 40m "$@" $packages; } || failed=yes
wait "$program" || failed=yes
cat "$log"

took="tests took $((SECONDS - start)) s on $(getconf _NPROCESSORS_ONLN) cores"
if [[ $failed ]]; then
	echo "make test: FAILED, $took: look for \"--- FAIL\" above" >&2
	exit 1
fi
echo "make test: passed, $took"
