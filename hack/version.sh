#!/usr/bin/env bash
# Prints the version of this checkout, or of one of its commits. VERSION names the next release.
#
#	hack/version.sh [COMMIT]
#
#	v0.1.0                                      a commit with this tag
#	v0.1.0-dev.7+g1a2b3c4d5e6f                  seven commits after VERSION changed
#	v0.1.0-dev.7+g1a2b3c4d5e6f.dirty.0a1b2c3d   the same with changes, distinguished by a hash
#	v0.1.0-dev                                  outside Git
set -euo pipefail
cd "$(dirname "$0")/.."

file=internal/base/version/VERSION

# A source archive may be inside another checkout.
if ! prefix=$(git rev-parse --show-prefix 2>/dev/null) || [[ $prefix ]] || ! git rev-parse --verify --quiet HEAD >/dev/null; then
	echo "$(<"$file")-dev"
	exit
fi

if (($# > 0)); then
	commit=$1 changes=""
	next=$(git show "$commit:$file")
else
	commit=HEAD changes=$(git status --porcelain)
	next=$(<"$file")
fi
if [[ ! $changes ]] && tag=$(git describe --tags --exact-match --match "$next" --match "$next-*" "$commit" 2>/dev/null); then
	echo "$tag"
	exit
fi
if git merge-base --is-ancestor "refs/tags/$next" "$commit" 2>/dev/null; then
	echo "version: $next is released, but $file still names it: write the next release there" >&2
	exit 1
fi

changed=$(git log -1 --format=%H "$commit" -- "$file")
version="$next-dev.$(git rev-list --count "${changed:+$changed..}$commit")+g$(git rev-parse --short=12 "$commit")"
if [[ $changes ]]; then
	hash=$({ git diff --binary HEAD; git ls-files --others --exclude-standard -z | xargs -0r sha256sum; } | sha256sum)
	version+=".dirty.${hash:0:8}"
fi
echo "$version"
