package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A screen shows what a program writes to a terminal, as far as elect top makes use of one.
type screen struct {
	keys *os.File
	done chan struct{}

	mu          sync.Mutex
	rows        [][]rune
	x, y        int
	top, bottom int // of the lines that scroll
	alternative bool
	escapes     int
	unknown     []string // sequences that are not understood
}

// watchScreen shows what is written to a terminal of that size.
func watchScreen(t *testing.T, width, height int) (s *screen, slave *os.File) {
	t.Helper()
	master, slave := terminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}))
	s = &screen{keys: master, done: make(chan struct{}), bottom: height}
	for range height {
		s.rows = append(s.rows, []rune(strings.Repeat(" ", width)))
	}
	go func() {
		defer close(s.done)
		buffer, rest := make([]byte, 1<<16), []byte(nil)
		for {
			n, err := master.Read(buffer)
			if err != nil {
				return
			}
			s.mu.Lock()
			rest = s.take(append(rest, buffer[:n]...))
			s.mu.Unlock()
		}
	}()
	return s, slave
}

// take shows a text, and returns what of it is not complete yet.
func (s *screen) take(text []byte) (rest []byte) {
	for len(text) > 0 {
		if text[0] == 0x1b {
			n := s.escape(text)
			if n == 0 {
				return text
			}
			text = text[n:]
			continue
		}
		if !utf8.FullRune(text) {
			return text
		}
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		switch r {
		case '\r':
			s.x = 0
		case '\n':
			if s.y == s.bottom-1 {
				s.shift(s.top, 1, false)
			} else {
				s.to(s.x, s.y+1)
			}
		case '\b':
			s.to(s.x-1, s.y)
		case '\t':
			s.to((s.x/8+1)*8, s.y)
		default:
			s.rows[s.y][s.x] = r
			s.x = min(s.x+1, len(s.rows[s.y])-1)
		}
	}
	return nil
}

// escape obeys a sequence, and returns its length: zero if there is more to come.
func (s *screen) escape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	s.escapes++
	if text[1] == 'M' {
		if s.y == s.top {
			s.shift(s.top, 1, true)
		} else {
			s.to(s.x, s.y-1)
		}
		return 2
	}
	if text[1] != '[' {
		s.unknown = append(s.unknown, fmt.Sprintf("%q", text[:2]))
		return 2
	}
	for i := 2; i < len(text); i++ {
		if c := text[i]; 0x40 <= c && c <= 0x7e {
			s.control(string(text[2:i]), c)
			return i + 1
		}
	}
	return 0
}

// control obeys a control sequence: see ctlseqs of xterm.
func (s *screen) control(params string, c byte) {
	n, m := 1, 1
	_, _ = fmt.Sscanf(params, "%d;%d", &n, &m) // one is the default
	row := s.rows[s.y]
	right := min(s.x+n, len(row))
	switch c {
	case 'A':
		s.to(s.x, s.y-n)
	case 'B':
		s.to(s.x, s.y+n)
	case 'C':
		s.to(s.x+n, s.y)
	case 'D':
		s.to(s.x-n, s.y)
	case 'G':
		s.to(n-1, s.y)
	case 'd':
		s.to(s.x, n-1)
	case 'H':
		s.to(m-1, n-1)
	case 'Z':
		s.to((s.x-1)/8*8, s.y)
	case 'X':
		blank(row[s.x:right])
	case 'P':
		copy(row[s.x:], row[right:])
		blank(row[len(row)-(right-s.x):])
	case '@':
		copy(row[right:], row[s.x:])
		blank(row[s.x:right])
	case 'J':
		s.erase(params)
	case 'K':
		s.eraseLine(params)
	case 'L', 'M':
		s.shift(s.y, n, c == 'L')
	case 'S', 'T':
		s.shift(s.top, n, c == 'T')
	case 'r':
		s.top, s.bottom = n-1, min(max(m, n+1), len(s.rows))
		s.to(0, 0)
	case 'h', 'l':
		if params == "?1049" {
			s.alternative = c == 'h'
		}
	case 'm', 'p', 'u', 'W': // colours, and what this terminal cannot do
	default:
		s.unknown = append(s.unknown, fmt.Sprintf("[%s%c", params, c))
	}
}

// to moves the cursor, as far as there is room.
func (s *screen) to(x, y int) {
	s.y = min(max(y, 0), len(s.rows)-1)
	s.x = min(max(x, 0), len(s.rows[s.y])-1)
}

// shift moves the lines that scroll, from one on, down or up.
func (s *screen) shift(from, n int, down bool) {
	for range min(n, s.bottom-from) {
		below := s.rows[from:s.bottom]
		moved := []rune(strings.Repeat(" ", len(below[0])))
		if down {
			copy(below[1:], below)
			below[0] = moved
		} else {
			copy(below, below[1:])
			below[len(below)-1] = moved
		}
	}
}

func (s *screen) erase(params string) {
	for y := range s.rows {
		if params == "2" || y > s.y && params != "1" || y < s.y && params == "1" {
			blank(s.rows[y])
		}
	}
	s.eraseLine(params)
}

func (s *screen) eraseLine(params string) {
	switch row := s.rows[s.y]; params {
	case "1":
		blank(row[:s.x+1])
	case "2":
		blank(row)
	default:
		blank(row[s.x:])
	}
}

func blank(row []rune) {
	for i := range row {
		row[i] = ' '
	}
}

// text returns what is shown.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := []string{}
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// inAlternative reports whether the program has a screen of its own.
func (s *screen) inAlternative() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alternative
}

// isLeft waits until the terminal is as it was before.
func (s *screen) isLeft(t *testing.T) {
	t.Helper()
	eventually(t, "the screen of its own is left", func() bool { return !s.inAlternative() })
}

// strange returns the sequences that were not understood.
func (s *screen) strange() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unknown)
}

// shows waits until something is shown.
func (s *screen) shows(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		for begun := time.Now(); !strings.Contains(s.text(), part); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 30*time.Second {
				require.FailNow(t, "not shown: "+part, s.text())
			}
		}
	}
}

// press types keys.
func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	_, err := s.keys.WriteString(keys)
	require.NoError(t, err)
}
