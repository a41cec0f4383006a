// Elect chooses one leader among processes that share a store, and runs a
// command while it leads.
//
//	elect run nightly-report -- ./report.sh
//
// See elect --help, elect help stores, and the help of each command.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// Exit statuses besides the command's own.
const (
	statusNo       = 1   // the answer is no: nobody leads, a promise broken, a store unfit
	statusFailure  = 125 // elect itself failed, or was used wrongly
	statusNotExec  = 126 // the command cannot be executed
	statusNotFound = 127 // the command is not there
	statusSignal   = 128 // plus the number of the signal
)

// An exit ends the program with a status, and says err if there is one.
type exit struct {
	status int
	err    error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

func main() {
	stderr := newSpool(os.Stderr)
	s := &settings{stderr: stderr}
	perform, ok := role(os.Args[1:])
	if !ok {
		perform = newRoot(s).Execute
	}
	status := s.report(perform())
	stderr.close()
	os.Exit(status)
}

// report says what went wrong, in one line, and returns the exit status.
func (s *settings) report(err error) int {
	if err == nil {
		return 0
	}
	e := exit{status: statusFailure, err: err}
	_ = errors.As(err, &e)
	switch {
	case e.err == nil:
	case s.format == asJSON:
		slog.New(newJSONHandler(s.stderr, slog.LevelError)).Error(oneLine(e.err))
	default:
		fmt.Fprintln(s.stderr, "elect: "+oneLine(e.err))
	}
	return e.status
}

// oneLine returns an error's text without line breaks, and without the name of the
// library, which is that of the command, too.
func oneLine(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), ":\n", ": ") // a heading
	text = strings.ReplaceAll(text, "\n", "; ")                             // errors.Join
	text = strings.Join(strings.Fields(text), " ")
	return strings.ReplaceAll(strings.TrimPrefix(text, "election: "), ": election: ", ": ")
}
