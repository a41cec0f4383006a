#!/usr/bin/env bash
# Builds a program at the version that a go.mod here pins, unless the cache has it, and prints the
# executable's path:
#
#	tools/build.sh FOLDER MODULE PACKAGE
#
# FOLDER is that of the go.mod, and PACKAGE the import path of a program in MODULE.
set -euo pipefail
cd "$(dirname "$0")/${1:?}"
module=${2:?} package=${3:?}
export GOWORK=off

go=${GO:-go}
name=$(basename "$(sed -E 's#/v[0-9]+$##' <<<"$package")")
version=$("$go" list -m -f '{{.Version}}' "$module")
path=${CACHE:?}/$name-$version-$("$go" env GOVERSION GOHOSTOS GOHOSTARCH | paste -sd-)

if [[ ! -x $path ]]; then
	echo "building $name $version (once, a few minutes)" >&2
	mkdir -p "$CACHE"
	part=$(mktemp "$path.XXXXXX")
	trap 'rm -f "$part"' EXIT
	GOOS='' GOARCH='' "$go" build -mod=readonly -ldflags="-s -w -X main.version=${version#v}" -o "$part" "$package" >&2
	mv "$part" "$path"
fi
echo "$path"
