#!/usr/bin/env bash
# Fails if a module file is not tidy, if a known vulnerability is reachable and has a fix, or if
# generated files are outdated. It compares with the initial state, not with the last commit, so it
# works in a dirty tree, too.
set -euo pipefail
cd "$(dirname "$0")/.."

# One line "checksum name" per file that is, or could be, committed.
snapshot() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . -type f -not -path './bin/*' -print0
	fi | sort -zu | { xargs -0 sha256sum 2>/dev/null || true; }
}

say() { echo "verify: $*"; }

say "module files"
hack/modules.sh go mod tidy -diff

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	say "words"
	go run ./hack/words
fi

say "vulnerabilities"
go run ./hack/vulns

say "generated files"
before=$(snapshot)
make generate
if ! changed=$(diff <(echo "$before") <(snapshot)); then
	say "these files were out of date and have been generated again; review and commit them:" >&2
	sed -n 's/^[<>] [0-9a-f]*  /  /p' <<<"$changed" | sort -u >&2
	exit 1
fi

say "passed"
