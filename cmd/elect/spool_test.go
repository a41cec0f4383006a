package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpoolWritesEverythingInOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newSpool(&out)
	want := ""
	for i := range spoolLines / 2 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		_, err := io.WriteString(s, line)
		require.NoError(t, err)
	}
	s.close()
	require.Equal(t, want, out.String())
}

// A stuck writer takes nothing until it is released.
type stuck struct {
	released chan struct{}
	bytes.Buffer
}

func (w *stuck) Write(b []byte) (int, error) {
	<-w.released
	return w.Buffer.Write(b)
}

func TestSpoolKeepsNobodyWaitingAndCountsWhatItDrops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{released: make(chan struct{})}
		s := newSpool(out)
		for range spoolLines + 51 { // one is being written
			_, err := io.WriteString(s, "line\n")
			require.NoError(t, err)
			synctest.Wait()
		}
		close(out.released)
		s.close()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, spoolLines+2)
		require.Contains(t, out.String(), " warn: lines are missing here: they came faster than they could be written lines=50\n")
	})
}

func TestSpoolSaysWhatIsMissingInTheFormatOfTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{released: make(chan struct{})}
		s := &settings{stderr: newSpool(out), format: asJSON, level: "error"}
		log, err := s.logger()
		require.NoError(t, err)
		for range spoolLines + 8 {
			log.Error("it happened")
			synctest.Wait()
		}
		close(out.released)
		s.stderr.close()
		type entry struct {
			Level, Msg string
			Lines      int
		}
		var missing []entry
		for line := range strings.Lines(out.String()) {
			var e entry
			require.NoError(t, json.Unmarshal([]byte(line), &e), line)
			if e.Msg != "it happened" {
				missing = append(missing, e)
			}
		}
		require.Equal(t, []entry{{"WARN", "lines are missing here: they came faster than they could be written", 7}}, missing)
	})
}

func TestSpoolEndsWithoutAnOutputThatTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{released: make(chan struct{})}
		s := newSpool(out)
		_, err := io.WriteString(s, "line\n")
		require.NoError(t, err)
		begin := time.Now()
		s.close()
		require.Equal(t, spoolPatience, time.Since(begin))
		close(out.released)
	})
}
