#!/usr/bin/env bash
# Prints the version of this checkout. VERSION names the next release.
#
#	v0.1.0                                  a commit with this tag
#	v0.1.0-dev.7+g1a2b3c4d5e6f              seven commits after VERSION changed
#	v0.1.0-dev.7+g1a2b3c4d5e6f.dirty.0a1b2c3d   the same with changes, distinguished by a hash
#	v0.1.0-dev                              outside Git
set -euo pipefail
cd "$(dirname "$0")/.."

file=internal/base/version/VERSION
next=$(<"$file")

# A source archive may be inside another checkout.
if ! prefix=$(git rev-parse --show-prefix 2>/dev/null) || [[ $prefix ]] || ! commit=$(git rev-parse --verify --quiet --short=12 HEAD); then
	echo "$next-dev"
	exit
fi

changes=$(git status --porcelain)
if [[ ! $changes ]] && tag=$(git describe --tags --exact-match --match "$next" --match "$next-*" 2>/dev/null); then
	echo "$tag"
	exit
fi
if git merge-base --is-ancestor "refs/tags/$next" HEAD 2>/dev/null; then
	echo "version: $next is released, but $file still names it: write the next release there" >&2
	exit 1
fi

changed=$(git log -1 --format=%H -- "$file")
version="$next-dev.$(git rev-list --count "${changed:+$changed..}HEAD")+g$commit"
if [[ $changes ]]; then
	hash=$({ git diff --binary HEAD; git ls-files --others --exclude-standard -z | xargs -0r sha256sum; } | sha256sum)
	version+=".dirty.${hash:0:8}"
fi
echo "$version"
