#!/usr/bin/env bash
# Runs a go command once per module file of the repository:
#
#   hack/modules.sh go mod tidy -diff
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -ge 3 && $1 == go ]] || { echo "usage: hack/modules.sh go mod SUBCOMMAND [FLAG...]" >&2; exit 2; }

for file in go.mod hack/tools/go.mod kube/*/*.mod test/clients/*/go.mod test/s3/*/go.mod; do
	if ! (cd "$(dirname "$file")" && "$1" "$2" "$3" -modfile="$(basename "$file")" "${@:4}"); then
		echo "$file: \"$*\" failed; if it shows a difference, run \"make tidy\"" >&2
		exit 1
	fi
done
