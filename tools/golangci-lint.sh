#!/usr/bin/env bash
# Prints the path of golangci-lint, which it builds unless the cache has it.
exec "$(dirname "$0")/build.sh" . github.com/golangci/golangci-lint/v2 github.com/golangci/golangci-lint/v2/cmd/golangci-lint
