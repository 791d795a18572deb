#!/usr/bin/env bash
# Runs a check, unless it passed before on exactly these files with this Go:
#
#   hack/unchanged.sh lint make lint
#
# Results are recorded in the user's cache, for all checkouts. The test runner removes old ones.
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
	} | sha256sum | cut -d ' ' -f 1
}

records=${XDG_CACHE_HOME:-$HOME/.cache}/drover/passed
before=$(state)
if [[ -f $records/$name-$before ]]; then
	echo "$name: passed before, and nothing changed"
	touch "$records/$name-$before"
	exit 0
fi
"$@"
if [[ $(state) == "$before" ]]; then
	mkdir -p "$records"
	touch "$records/$name-$before"
fi
