package history_test

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
)

// troubled is played, with faults.
func troubled() history.History {
	h := played()
	cut, healed, due := at(2500, "b", history.Fault, 0, 0), at(5000, "b", history.Healed, 0, 0), at(2000, "b", history.Due, 0, 0)
	cut.Text, healed.Text, due.Within = "is cut off", "is connected again", 3300*time.Millisecond
	h.Events = append(h.Events, cut, healed, due)
	h.Sort()
	return h
}

func draw(t *testing.T, h history.History, title string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, history.SVG(&b, h, title))
	return b.String()
}

// texts returns the character data of all elements of a name. It fails if the
// document is not well-formed.
func texts(t *testing.T, svg, name string) []string {
	t.Helper()
	found, in := []string{}, false
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			if in = token.Name.Local == name; in {
				found = append(found, "")
			}
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				found[len(found)-1] += string(token)
			}
		}
	}
}

func TestThePictureShowsWhoLedWhenAndWhatWasDoneToThem(t *testing.T) {
	svg := draw(t, troubled(), "three candidates")
	told := texts(t, svg, "title")
	for _, s := range []string{
		"three candidates",
		"a leads under token 1 from 0.01 s to 1.00 s", "b leads under token 2 from 1.05 s to 4.60 s", "c leads under token 3 from 4.80 s to 7.10 s",
		"killed at 1.00 s", "stopped at 2.00 s", "asleep from 2.00 s", "woken at 6.00 s", "is cut off",
	} {
		require.Contains(t, told, s)
	}
	shown := texts(t, svg, "text")
	for _, s := range []string{
		"three candidates", "a", "b", "c", "leader", "fault", "1 · token 1", "2 · token 2", "3 · token 3", "0 s", "7 s",
		"2.50 s", "b is cut off", "5.00 s", "b is connected again",
		"asleep", "killed", "put to sleep", "woken", "its lease was trusted until", "a leader is promised by then", "while a fault lasts",
	} {
		require.Contains(t, shown, s)
	}
}

func TestThePictureOfAnyLengthHasSomeTicks(t *testing.T) {
	for length := time.Nanosecond; length < 1000*time.Hour; length *= 7 {
		h := history.History{Events: []history.Event{at(0, "a", history.Ready, 0, 0), {At: length, Kind: history.Left}}}
		svg := draw(t, h, "")
		require.NotContains(t, svg, "%!")
		ticks := strings.Count(svg, `"axis"`)
		require.Greater(t, ticks, 1, length)
		require.Less(t, ticks, 30, length)
	}
}

func TestAFaultLastsUntilItsVictimIsHealed(t *testing.T) {
	shade := regexp.MustCompile(`<rect class="fault" x="[0-9.]*" y="[0-9.]*" width="([0-9.]*)"`)
	width := func(who string) string {
		cut, healed := at(1000, "a", history.Fault, 0, 0), at(2000, who, history.Healed, 0, 0)
		h := history.History{Events: []history.Event{at(0, "a", history.Ready, 0, 0), cut, healed, at(3000, "a", history.Left, 0, 0)}}
		return shade.FindStringSubmatch(draw(t, h, ""))[1]
	}
	require.Equal(t, width("a"), width(""))
	require.NotEqual(t, width("a"), width("b"))
}

func TestADeadCandidateDoesNotWait(t *testing.T) {
	alive := func(events ...history.Event) int {
		h := history.History{Events: append([]history.Event{at(0, "a", history.Ready, 0, 0)}, events...)}
		svg := draw(t, h, "")
		lines, _, _ := strings.Cut(svg, `"small middle"`) // of the axis
		return strings.Count(lines, `<line class="waits"`)
	}
	require.Equal(t, 1, alive(at(10, "a", history.Killed, 0, 0), at(20, "a", history.Worked, 0, 0)))
	require.Equal(t, 2, alive(at(10, "a", history.Killed, 0, 0), at(20, "a", history.Ready, 0, 0)))
	require.Equal(t, 2, alive(at(10, "a", history.Left, 0, 0), at(20, "a", history.Ready, 0, 0), at(30, "a", history.Left, 0, 0)))
}

func TestThePictureIsTheSameEachTime(t *testing.T) {
	first := draw(t, troubled(), "t")
	for range 10 {
		require.Equal(t, first, draw(t, troubled(), "t"))
	}
}

func TestWhateverTextsSayThePictureIsWellFormed(t *testing.T) {
	h := troubled()
	evil := `</text><script>"'&` + "\x00\xff"
	for i := range h.Events {
		h.Events[i].Who += evil
		h.Events[i].Text += evil
	}
	svg := draw(t, h, evil)
	require.Contains(t, texts(t, svg, "text"), "</text><script>\"'&\uFFFD\uFFFD")
	require.Empty(t, texts(t, svg, "script"))
}

func TestAPictureOfNothingIsEmpty(t *testing.T) {
	require.Equal(t, []string{"nothing", "leader", "0 s"}, texts(t, draw(t, history.History{}, "nothing"), "text"))
}

func TestALongNoteIsBrokenBetweenItsWords(t *testing.T) {
	h := troubled()
	h.Events[1].Kind, h.Events[1].Text = history.Fault, strings.Repeat("word ", 60)
	for _, line := range texts(t, draw(t, h, ""), "text") {
		require.LessOrEqual(t, len(line), 130)
		require.NotRegexp(t, `\bwor?$|^r?d\b`, line)
	}
}
