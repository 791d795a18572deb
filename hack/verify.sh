#!/usr/bin/env bash
# Fails if a module file is not tidy, if a known vulnerability is reachable and has a fix, if the page
# in web/ has type errors, or if generated files are outdated. Files are generated in a copy of the
# working tree, uncommitted changes included, so that tests can run at the same time.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# Names of the files that are, or could be, committed.
files() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . -type f -not -path './bin/*' -print0
	fi
}

# One line "checksum name" per file of the copy.
snapshot() { (cd "$copy" && find . -type f -print0 | sort -z | xargs -0 sha256sum); }

say() { echo "verify: $*"; }

say "module files"
hack/modules.sh go mod tidy -diff

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	say "words"
	go run ./hack/words
fi

say "vulnerabilities"
go run ./hack/vulns

say "types of the page"
hack/typecheck.sh

say "generated files"
files | tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory="$copy"
before=$(snapshot)
(cd "$copy" && go generate ./...)
if ! changed=$(diff <(echo "$before") <(snapshot)); then
	say "these files are out of date; run \"make generate\", then review and commit them:" >&2
	sed -n 's/^[<>] [0-9a-f]*  /  /p' <<<"$changed" | sort -u >&2
	exit 1
fi

say "passed"
