#!/usr/bin/env bash
# Prints what CHANGELOG.md says of a version (v1.2.3), or of what is unreleased if it does not know
# that version. A pre-release (v1.2.3-rc.1) is one of its version.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?which version? v1.2.3}
section=${version#v} section=${section%%-*}
grep -qF "## [$section]" CHANGELOG.md || section=Unreleased

awk -v heading="## [$section]" '
	index($0, "## ") == 1 { found = index($0, heading) == 1; next }
	found { print; said += NF }
	END { exit !said }
' CHANGELOG.md || {
	echo "release-notes: CHANGELOG.md says nothing about $version" >&2
	exit 1
}
