#!/usr/bin/env bash
# Runs every fuzz target for a while, one after the other: hack/fuzz.sh 30s. A
# target that finds something leaves the input in testdata and fails the run.
# Parsers that are to be fuzzed are in packages without Kubernetes' clients, which
# take many minutes to compile with instrumentation; other targets run as plain tests.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}

grep -rlE --include='*_test.go' '^func Fuzz' internal | xargs -n1 dirname | sort -u | while read -r package; do
	if grep -q '^k8s.io/client-go/kubernetes/typed' <<<"$(go list -deps "./$package")"; then
		echo "fuzz: $package left out, it imports Kubernetes' clients"
		continue
	fi
	for target in $(grep -hoE '^func Fuzz\w+' "$package"/*_test.go | cut -d' ' -f2 | sort -u); do
		echo "fuzz: $package $target for $time"
		failed=
		out=$(go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x 2>&1) || failed=yes
		# The go command sometimes takes the end of the time for a failure; a real one names its input.
		if grep -q 'Failing input written' <<<"$out" || { [ "$failed" ] && ! grep -q 'context deadline exceeded' <<<"$out"; }; then
			echo "$out"
			exit 1
		fi
		grep -E 'elapsed' <<<"$out" | tail -n1
	done
done
