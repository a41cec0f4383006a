package mistake

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// Missed fails a test whose planted mistake was not found, and ends it. Looked says how it was
// looked for.
func Missed(t testing.TB, looked string) {
	t.Helper()
	t.Fatal(Report(looked, Again(t)))
}

// Report returns what a test says of a planted mistake that was not found, and of how to look
// for it again.
func Report(looked, again string) string {
	return fmt.Sprintf("This is a test of the tests. It planted a mistake that has to be found, and it was not found: %s. "+
		"So the same mistake in the library might not be found either. The library itself has not failed.\nagain: %s", looked, again)
}

// Again returns the command that runs a test once more.
func Again(t testing.TB) string {
	steps := strings.Split(t.Name(), "/")
	for i, step := range steps {
		steps[i] = "^" + regexp.QuoteMeta(step) + "$"
	}
	at := "."
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(info.Path, ".test") {
		at = strings.TrimSuffix(info.Path, ".test")
	}
	return fmt.Sprintf("go test -count=1 -run '%s' %s", strings.Join(steps, "/"), at)
}
