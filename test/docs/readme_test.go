package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// around is what a part of a program stands in.
const around = `package main

import (
	"context"
	"errors"
	"log"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election"
	rediskv "github.com/electkv/election/backends/redis"
)

func part(ctx context.Context) {
%s}

func bill(ctx context.Context, fence uint64) error { return nil }
`

func TestTheCodeInDocumentsCompiles(t *testing.T) {
	for _, doc := range []string{"README.md", "docs/succession.md"} {
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllSubmatch(read(t, filepath.Join(root, doc)), -1)
		require.NotEmpty(t, blocks, "%s shows no code", doc)
		for _, block := range blocks {
			file := filepath.Join(t.TempDir(), "main.go")
			program := string(block[1])
			if !strings.HasPrefix(program, "package ") {
				program = fmt.Sprintf(around, program)
			}
			require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
			vet := exec.CommandContext(t.Context(), "go", "vet", file)
			vet.Dir = root
			out, err := vet.CombinedOutput()
			require.NoError(t, err, "%s: %s", doc, out)
		}
	}
}
