#!/usr/bin/env bash
# Makes the release VERSION of all modules together, in this clone: a commit in which they require
# each other in that version and the changelog has its date, and a tag for each. Nothing is pushed.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
version=${1:?which version? v1.2.3}

if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
	echo "release: $version is no version: want v1.2.3" >&2
	exit 1
fi
if [[ -n $(git status --porcelain) ]]; then
	echo "release: the work tree has changes: commit them first" >&2
	exit 1
fi

ours=github.com/electkv/election
root=$($go list -m -f '{{.Dir}}' $ours)
tags=("$version")
files=(go.work bench/go.mod)
while read -r path dir; do
	files+=("${dir#"$root"/}/go.mod")
	case $path in
	"$ours" | "$ours"/test*) ;; # the root has the version for a tag; nobody requires the tests
	*) tags+=("${path#"$ours"/}/$version") ;;
	esac
done < <($go list -m -f '{{.Path}} {{.Dir}}')
files=("${files[@]/#"$root"\/go.mod/go.mod}")

for tag in "${tags[@]}"; do
	if git rev-parse -q --verify "refs/tags/$tag" >/dev/null; then
		echo "release: there is a tag $tag" >&2
		exit 1
	fi
done

# A module, with or without "require" before it, and its version; in go.work and bench/go.mod, what
# replaces it comes after.
sed -i -E "s#^((require|replace)?[[:space:]]*$ours(/[^ ]+)?) v[^ ]+#\1 $version#" "${files[@]}"
GO=$go tools/alone.sh "$go" mod tidy -diff

# The changelog may have a section of this version. If not, what is unreleased becomes one.
number=${version#v}
if [[ $number != *-* ]]; then
	grep -qF "## [$number]" CHANGELOG.md || sed -i "s/^## \[Unreleased\]$/&\n\n## [$number] - unreleased/" CHANGELOG.md
	sed -i "s/^\(## \[${number//./\\.}\]\) - unreleased$/\1 - $(date -u +%F)/" CHANGELOG.md
fi
if [[ -n $(git status --porcelain) ]]; then
	git commit -q -m "Release $version" -- "${files[@]}" CHANGELOG.md
fi
for tag in "${tags[@]}"; do git tag -a -m "$tag" "$tag"; done

echo "Look at it, and then push the commit and its tags at once:"
echo "  git push --atomic origin HEAD ${tags[*]}"
