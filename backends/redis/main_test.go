package rediskv_test

import (
	"os"
	"testing"

	"github.com/electkv/election/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Parallel(8)
	os.Exit(m.Run())
}
