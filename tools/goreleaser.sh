#!/usr/bin/env bash
# Carries out goreleaser on this commit, with the tag v* that it has among those of all modules, or
# the last one before. goreleaser, and syft for the bills of materials, are built unless the cache
# has them.
set -euo pipefail
cd "$(dirname "$0")/.."

goreleaser=$(tools/build.sh goreleaser github.com/goreleaser/goreleaser/v2 github.com/goreleaser/goreleaser/v2)
if [[ ${1:-} == release ]]; then
	syft=$(tools/build.sh syft github.com/anchore/syft github.com/anchore/syft/cmd/syft)
	programs=$(mktemp -d)
	trap 'rm -rf "$programs"' EXIT
	ln -s "$syft" "$programs/syft"
	PATH=$programs:$PATH
fi
tag=$(git tag --points-at HEAD --list 'v*' --sort=-version:refname | head -n 1)
[[ $tag ]] || tag=$(git describe --tags --abbrev=0 --match='v*' 2>/dev/null) || tag=v0.0.0
if ! git ls-remote --get-url >/dev/null 2>&1; then # a clone that has no remote
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/electkv/election
fi
GORELEASER_CURRENT_TAG=$tag "$goreleaser" "$@"
