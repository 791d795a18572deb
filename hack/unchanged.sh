#!/usr/bin/env bash
# Runs a check, unless it passed before on exactly these files with this Go:
#
#   hack/unchanged.sh lint make lint
#
# Results are recorded in bin/, so "make clean" forgets them.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -ge 2 ]] || { echo "usage: hack/unchanged.sh NAME COMMAND [ARG...]" >&2; exit 2; }
name=$1
shift

# One checksum of the Go version and of every file that is, or could be, committed.
state() {
	{
		go version
		if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
			git ls-files -z --cached --others --exclude-standard
		else
			find . -type f -not -path './bin/*' -print0
		fi | sort -zu | { xargs -0 sha256sum 2>/dev/null || true; }
	} | sha256sum
}

record=bin/.passed-$name
before=$(state)
if [[ -f $record && $(<"$record") == "$before" ]]; then
	echo "$name: passed before, and nothing changed"
	exit 0
fi
"$@"
if [[ $(state) == "$before" ]]; then
	mkdir -p bin
	echo "$before" >"$record"
fi
