#!/usr/bin/env bash
# Runs all tests. Packages are tested with the race detector; the tests of the
# whole program run beside them and without it, as they wait for machines more
# than they compute, and are to see the program that users get. What passed is
# not tested again until its code or its inputs change; -count=1 tests all.
#
# A machine that is busy with something else can fail a test that waits. When no
# more than two tests fail, each is given a second try with the machine to
# itself, and those that pass then are named: they are to be mended too.
#
#	hack/test.sh [flags for go test]
set -euo pipefail
cd "$(dirname "$0")/.."

start=$SECONDS
logs=$(mktemp -d)
flags=("$@")

# of tests one package, or several, the way its tests want it.
of() {
	if [[ $1 == */test/e2e ]]; then
		CGO_ENABLED=0 go test -timeout 60m "${flags[@]}" "$@"
	else
		CGO_ENABLED=1 go test -race -p 1 -timeout 40m "${flags[@]}" "$@"
	fi
}

# failures prints the package and the name of each test that failed in a log, and packages alone that failed without one.
failures() {
	awk -F '[ \t]+' '
		/^--- FAIL: / { names[++n] = $3 }
		/^FAIL\t/ { if (!n) print $2; for (i = 1; i <= n; i++) print $2, names[i]; known = 1 }
		/^(FAIL|ok  )\t/ { n = 0 }
		END { if (!known) print FILENAME }' "$1"
}

# retried says that every failure in logs was one of a few that passed the second time.
retried() {
	local all package name
	mapfile -t all < <(for log in "$@"; do failures "$log"; done)
	((${#all[@]} <= 2)) || return 1
	for one in "${all[@]}"; do
		read -r package name <<<"$one"
		[[ $name ]] || return 1
		echo "make test: $name of $package failed, and is tried again"
		of "$package" -count=1 -run "^$name\$" || return 1
		late+=("$name")
	done
}

program=$(go list ./test/e2e)
of "$program" >"$logs/program" 2>&1 &
running=$!
trap 'kill "$running" 2>/dev/null || true; rm -rf "$logs"' EXIT

# One package at a time, as the program is tested too; what they need is
# compiled by all cores before.
failed=()
mapfile -t packages < <(go list ./... | grep -vx "$program")
mapfile -t compiled < <(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -vx "$program")
CGO_ENABLED=1 go build -race "${compiled[@]}"
of "${packages[@]}" 2>&1 | tee "$logs/packages" || failed+=("$logs/packages")
wait "$running" || failed+=("$logs/program")
cat "$logs/program"

late=()
if ((${#failed[@]} > 0)) && retried "${failed[@]}"; then
	failed=()
fi
took="tests took $((SECONDS - start)) s on $(getconf _NPROCESSORS_ONLN) cores"
if ((${#failed[@]} > 0)); then
	echo "make test: FAILED, $took: look for \"--- FAIL\" above" >&2
	exit 1
fi
for name in "${late[@]}"; do
	echo "make test: $name passed the second time only"
done
echo "make test: passed, $took"
