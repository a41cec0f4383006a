#!/usr/bin/env bash
# Prints the last release before this commit, whose candidates make test/all and make test/rollout have
# stand beside those of this commit. While there is none, it prints the last commit with the first
# engine. A commit that is a release is compared with the one before.
set -euo pipefail
cd "$(dirname "$0")"

git -c safe.directory='*' describe --tags --abbrev=0 --match='v*' --exclude='*-*' 'HEAD^' 2>/dev/null || echo d65a82f
