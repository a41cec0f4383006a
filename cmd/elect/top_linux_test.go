package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// top starts elect top at a terminal.
func (p *place) top(width, height int, args ...string) (*proc, *screen) {
	p.t.Helper()
	s, slave := watchScreen(p.t, width, height)
	cmd := exec.Command(elect, append([]string{"top", "--store", p.store}, args...)...)
	cmd.Env = append(cmd.Environ(), "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	e := startCommand(p.t, cmd)
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Log("the screen:\n" + s.text())
		}
	})
	return e, s
}

func TestTopShowsWhatHappensAndIsUsedByKeys(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e, s := p.top(130, 24)
	s.shows(t, "0 elections", "No elections yet.", "q quit")
	require.True(t, s.inAlternative())
	first := p.stand("anna", "elected")
	s.shows(t, "1 election", "anna")
	p.stand("ben", "heir")
	s.shows(t, "ben")
	p.name = "other"
	p.stand("dora", "elected")
	s.shows(t, "2 elections", "dora")
	require.Regexp(t, `› job +■ anna +\S+ (ms|s) +■ ben +\d`, s.text())
	p.name = "job"
	p.stand("cleo", "waiting")
	first.send(t, syscall.SIGKILL)
	s.shows(t, "› job          ■ ben")
	require.Contains(t, s.text(), "✗")

	s.press(t, "j")
	s.shows(t, "› other")
	s.press(t, "\x1b[A\r") // up, enter
	s.shows(t, "leader   ■ ben for ", "heir     ■ cleo for ", "lost: it did not hand over, though it had an heir; ")
	require.Regexp(t, `heir; (nobody led for \d|the gap was too short to be seen)`, s.text()) // the file of a dead process is seen at once
	for _, who := range []string{"anna", "ben", "cleo", "leader"} {
		require.Regexp(t, `(?m)^  `+who+` +[ █▒✗·]+$`, s.text())
	}
	s.press(t, "w")
	s.shows(t, "−10 min")
	s.press(t, "?")
	s.shows(t, "any key goes back")
	s.press(t, " ")
	s.shows(t, "esc back")
	s.press(t, "\x1b")
	s.shows(t, "› job")
	s.press(t, "q")
	require.Zero(t, e.status(t))
	s.isLeft(t)
	require.Empty(t, s.strange())
}

func TestTopFitsItsTerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		_, err := p.kv.Create(t.Context(), strings.Repeat(name, 50), kv.Record{Signature: strings.Repeat("candidate", 20) + "/N.1", TTL: time.Hour})
		require.NoError(t, err)
	}
	_, s := p.top(40, 8)
	s.shows(t, "8 elections", "aaaa")
	require.NotContains(t, s.text(), "eeee", "there is no room")
	s.press(t, "G")
	s.shows(t, "hhhh")
	require.NotContains(t, s.text(), "aaaa")
	require.Len(t, strings.Split(s.text(), "\n"), 8)
	s.press(t, "g")
	s.shows(t, "aaaa")
}

// What is in a store must not be able to do anything to the terminal of those who look at it.
func TestTopShowsWhatATerminalWouldObeyAsText(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const evil = "\x1b]0;title\x07\x1b[2J\x1b[8mhidden\r\nline\u202e"
	_, err := p.kv.Create(t.Context(), "job"+evil, kv.Record{Signature: "id" + evil + "/N.1", Value: "value" + evil, TTL: time.Hour})
	require.NoError(t, err)
	_, s := p.top(220, 20)
	s.shows(t, "job�]0;title��[2J�[8mhidden��line�")
	s.press(t, "\r")
	s.shows(t, "value    value�]0;title��[2J�[8mhidden��line�")
	require.Empty(t, s.strange())
}

func TestTopEndsWithASignal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		e, s := p.top(80, 10)
		s.shows(t, "No elections yet.")
		e.send(t, sig)
		require.Zero(t, e.status(t))
		s.isLeft(t)
	}
}

func TestTopWithoutATerminalSaysWhatToUseInstead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	status, stdout, stderr := finish(t, "top", "--store", p.store)
	require.Equal(t, 125, status)
	require.Empty(t, stdout)
	require.Equal(t, "elect: top needs a terminal; elect watch and elect status print lines, and elect serve has a page\n", stderr)
}

// The library of top must not ask the terminal of other commands for its colours.
func TestOtherCommandsWriteTextToATerminalAndNothingElse(t *testing.T) {
	t.Parallel()
	s, slave := watchScreen(t, 120, 10)
	cmd := exec.Command(elect, "version")
	cmd.Env = append(cmd.Environ(), "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	require.Zero(t, startCommand(t, cmd).status(t))
	s.shows(t, "elect ")
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Zero(t, s.escapes)
}
