#!/usr/bin/env bash
# Builds golangci-lint at the version that go.mod pins, unless the cache has it,
# and prints the executable's path.
set -euo pipefail
cd "$(dirname "$0")"
export GOWORK=off

go=${GO:-go}
module=github.com/golangci/golangci-lint/v2
version=$("$go" list -m -f '{{.Version}}' "$module")
path=${CACHE:?}/golangci-lint-$version-$("$go" env GOVERSION GOHOSTOS GOHOSTARCH | paste -sd-)

if [[ ! -x $path ]]; then
	echo "building golangci-lint $version (once, a minute or two)" >&2
	mkdir -p "$CACHE"
	part=$(mktemp "$path.XXXXXX")
	trap 'rm -f "$part"' EXIT
	GOOS='' GOARCH='' "$go" build -mod=readonly -ldflags='-s -w' -o "$part" "$module/cmd/golangci-lint" >&2
	mv "$part" "$path"
fi
echo "$path"
