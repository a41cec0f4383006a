package group_test

import (
	"os"
	"testing"

	"github.com/electkv/election/internal/leak"
)

// TestMain lets a copy of this test binary be a process of its own.
func TestMain(m *testing.M) {
	if text := os.Getenv(processVariable); text != "" {
		play(text)
		return
	}
	leak.Main(m)
}
