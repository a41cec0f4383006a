#!/usr/bin/env bash
# Carries out a command in each module of go.work by itself, where go uses the versions that the
# module's own go.mod has, as its users get them:
#
#	tools/alone.sh go vet ./...         # it compiles with the versions that it asks for
#	tools/alone.sh go mod tidy -diff    # it asks for what it needs, and for nothing else
#	tools/alone.sh go mod tidy          # sees to that
#
# The modules require each other by a version that nobody can download before it is released. So
# the command works on a copy of go.mod in which each of the others is replaced by its folder.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
version=$(awk '$1 == "github.com/electkv/election" { print $2 }' go.work)
declare -A ours
while read -r path dir; do ours[$path]=$dir; done < <($go list -m -f '{{.Path}} {{.Dir}}')
export GOWORK=off

status=0
for path in $(printf '%s\n' "${!ours[@]}" | sort); do
	dir=${ours[$path]}
	cp "$dir/go.mod" "$copy/go.mod"
	if [[ -e $dir/go.sum ]]; then cp "$dir/go.sum" "$copy/go.sum"; else : >"$copy/go.sum"; fi
	replace=() drop=()
	for other in "${!ours[@]}"; do
		[[ $other == "$path" ]] && continue
		replace+=("-replace=$other=${ours[$other]}")
		drop+=("-dropreplace=$other")
	done
	$go mod edit "${replace[@]}" "$copy/go.mod"
	echo "$* ($path)"
	(cd "$dir" && GOFLAGS="${GOFLAGS:-} -modfile=$copy/go.mod" "$@") || status=1
	if [[ "${*:2}" == "mod tidy" && $status == 0 ]]; then
		$go mod edit "${drop[@]}" "$copy/go.mod"
		sed -i "s/ v0\.0\.0-00010101000000-000000000000/ $version/" "$copy/go.mod" # one that is new here
		cp "$copy/go.mod" "$copy/go.sum" "$dir"
	fi
done
exit "$status"
