#!/usr/bin/env bash
# Writes what packages of elect have beside the program into a folder: manual pages, completions of
# shells, the units of systemd. The pages have the date of EPOCH, in seconds since 1970.
#
#	tools/package-files.sh v1.2.3 EPOCH FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?} epoch=${2:?} folder=${3:?}
go=${GO:-go}

rm -rf "$folder"
mkdir -p "$folder"/{man,completions}
elect=$folder/elect
CGO_ENABLED=0 GOOS='' GOARCH='' "$go" build -trimpath -ldflags="-X main.released=$version" -o "$elect" ./cmd/elect
SOURCE_DATE_EPOCH=$epoch "$elect" manual "$folder/man"
for page in "$folder"/man/*.1; do gzip -9 -n -k "$page"; done
"$elect" completion bash >"$folder/completions/elect.bash"
"$elect" completion zsh >"$folder/completions/_elect"
"$elect" completion fish >"$folder/completions/elect.fish"
for unit in deploy/systemd/*.service; do
	sed 's#/usr/local/bin/elect#/usr/bin/elect#' "$unit" >"$folder/${unit##*/}"
done
rm "$elect"
