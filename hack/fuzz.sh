#!/usr/bin/env bash
# Runs every fuzz target for the given time, one after the other: hack/fuzz.sh 1m.
# A target that finds a failing input writes it to testdata and fails the run; commit that file, so
# that tests replay it. The first run compiles everything with instrumentation, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-1m}

grep -rlE --include='*_test.go' '^func Fuzz' hack internal test | xargs -n1 dirname | sort -u | while read -r package; do
	for target in $(grep -hoE '^func Fuzz\w+' "$package"/*_test.go | cut -d' ' -f2 | sort -u); do
		echo "fuzz: $package $target for $time"
		failed=
		out=$(go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x 2>&1) || failed=yes
		# The go command sometimes reports the end of the time as a failure; a real failure names its input.
		if grep -q 'Failing input written' <<<"$out" || { [ "$failed" ] && ! grep -q 'context deadline exceeded' <<<"$out"; }; then
			echo "$out"
			exit 1
		fi
		grep -E 'elapsed' <<<"$out" | tail -n1
	done
done
