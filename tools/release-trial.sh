#!/usr/bin/env bash
# Makes a release in a clone, serves it as a module proxy would, and uses it as people do: runs the
# command by its version in an empty folder, and has a program import each backend.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
version=${1:-v0.999.0}
ours=github.com/electkv/election
known=$($go env GOMODCACHE)/cache/download

trial=$(mktemp -d)
trap 'chmod -R u+w "$trial"; rm -rf "$trial"' EXIT
git clone -q "$PWD" "$trial/clone"
cd "$trial/clone"
git config user.name trial && git config user.email trial@example.com
GO=$go tools/release.sh "$version"

for tag in $(git tag --points-at HEAD); do
	[[ $tag == *"$version" ]] || continue
	dir=${tag%"$version"} dir=${dir%/}
	module=$ours${dir:+/$dir}
	served=$trial/proxy/$module/@v
	mkdir -p "$served"
	without=()
	while read -r nested; do
		nested=$(dirname "$nested")
		without+=(":(exclude)$nested")
	done < <(cd "./$dir" && git ls-files '*/go.mod')
	git archive --format=zip --prefix="$module@$version/" -o "$served/$version.zip" "$tag:$dir" -- . "${without[@]}"
	git show "$tag:${dir:+$dir/}go.mod" >"$served/$version.mod"
	printf '{"Version":"%s","Time":"%s"}' "$version" "$(git show -s --format=%cI HEAD)" >"$served/$version.info"
	echo "$version" >"$served/list"
done

# What others have comes from what this machine has downloaded before.
export GOPROXY="file://$trial/proxy,file://$known,$($go env GOPROXY)" GONOSUMDB="$ours*" GOWORK=off
export GOMODCACHE=$trial/cache GOFLAGS='-modcacherw -trimpath'
mkdir "$trial/empty" && cd "$trial/empty"
echo "go run $ours/cmd/elect@$version demo"
$go run "$ours/cmd/elect@$version" demo
echo "go run $ours/cmd/elect@latest version"
$go run "$ours/cmd/elect@latest" version

$go mod init example.com/user 2>/dev/null
{
	echo "package main"
	for package in "" backends/consul backends/etcd backends/file backends/mem backends/paxos backends/redis backends/sql \
		backends/sql/pgxdriver fence kv/kvtest lock lock/gocronlock observe/otel observe/prom; do echo "import _ \"$ours${package:+/$package}\""; done
	echo "func main() {}"
} >main.go
$go mod tidy 2>/dev/null
$go build -o user .
grep "$ours" go.mod
