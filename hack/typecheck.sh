#!/usr/bin/env bash
# Checks the types of the page in web/ with TypeScript's native compiler, which needs no Node. npm
# downloads the compiler once; it is verified and kept in the user's cache. Without npm or the
# internet, this says so and passes, because builds need neither. With TYPECHECK=required it fails
# then.
set -euo pipefail
cd "$(dirname "$0")/.."

version=7.0.2
case $(uname -s)-$(uname -m) in
Linux-x86_64) platform=linux-x64 sum=7ecad6f67377e831856367ab062ef394f21506a611405bf8ac0ff039348637d3 ;;
Linux-aarch64) platform=linux-arm64 sum=c83d931ac9dd7549cde6e71246aa9d6a9812843023df3e277fe3b5dcf41dd0ea ;;
*) echo "typecheck: NOT CHECKED: no compiler for $(uname -s) on $(uname -m)" >&2; exit 0 ;;
esac
dir=${XDG_CACHE_HOME:-$HOME/.cache}/drover/typescript/$version-$platform

if [[ ! -x $dir/lib/tsc ]]; then
	mkdir -p "$(dirname "$dir")"
	new=$(mktemp -d "$dir.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	package=@typescript/typescript-$platform@$version
	if ! npm pack --silent --pack-destination "$new" "$package" >/dev/null; then
		echo "typecheck: NOT CHECKED: npm can't download $package" >&2
		[[ ${TYPECHECK:-} != required ]]
		exit
	fi
	mv "$new"/*.tgz "$new/package.tgz"
	echo "$sum  $new/package.tgz" | sha256sum --check --quiet
	tar --extract --gzip --file="$new/package.tgz" --directory="$new" --strip-components=1
	rm "$new/package.tgz"
	mv --no-target-directory "$new" "$dir" 2>/dev/null || [[ -x $dir/lib/tsc ]]
fi
"$dir/lib/tsc" --project web
