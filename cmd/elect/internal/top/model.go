package top

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/internal/boottime"
)

const (
	// breath is the least time between two pictures that changes cause.
	breath = 100 * time.Millisecond
	beat   = time.Second // between two that time causes

	// flapping is how many terms begin within while in an election whose leaders change too
	// often.
	flapping = 6
	while    = 10 * time.Minute
)

// A window is how much time a timeline shows.
type window struct {
	time.Duration
	text string
}

func windows() []window {
	return []window{{time.Minute, "1 min"}, {10 * time.Minute, "10 min"}, {time.Hour, "1 h"}, {6 * time.Hour, "6 h"}}
}

// A Model is what is shown. It is a value of package bubbletea: each change makes another one.
type Model struct {
	story *chronicle.Chronicle
	store string

	report        chronicle.Report
	now           time.Duration
	width, height int

	chosen string // the election that the cursor is on
	first  int    // the line of the list, or of one election, that is shown first
	window int    // of windows
	one    bool   // only the chosen election is shown
	help   bool
}

// New returns what to show of a chronicle of elections in a store.
func New(story *chronicle.Chronicle, store string) *Model {
	return &Model{story: story, store: store, now: boottime.Now(), report: story.Report(0)}
}

// The messages are what has changed, and that time has passed.
type (
	news struct{}
	tick struct{}
)

// Init implements [tea.Model].
func (m *Model) Init() tea.Cmd { return tea.Batch(m.await(), wait()) }

// await tells of the next change.
func (m *Model) await() tea.Cmd {
	next := m.report.Next
	return func() tea.Msg {
		<-next
		time.Sleep(breath) // what else changes meanwhile is in the same picture
		return news{}
	}
}

func wait() tea.Cmd { return tea.Tick(beat, func(time.Time) tea.Msg { return tick{} }) }

// Update implements [tea.Model].
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = boottime.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case news:
		m.report = m.story.Report(0)
		return m, m.await()
	case tick:
		return m, wait()
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	}
	return m, nil
}

// press does what a key asks for.
func (m *Model) press(key string) tea.Cmd {
	if m.help {
		m.help = false // by any key
		if key != "q" && key != "ctrl+c" {
			return nil
		}
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "?":
		m.help = true
	case "w":
		m.window = (m.window + 1) % len(windows())
	case "enter", "right", "l":
		if !m.one && len(m.report.Elections) > 0 {
			m.chosen, m.one, m.first = m.report.Elections[m.cursor()].Name, true, 0
			m.story.Look(m.chosen)
		}
	case "esc", "backspace", "left", "h":
		m.one, m.first = false, 0
		m.story.Look("")
	default:
		if to, ok := m.moved(key); ok {
			m.move(to)
		}
	}
	return nil
}

// moved returns where a key moves the cursor, or what is shown of one election.
func (m *Model) moved(key string) (to int, ok bool) {
	at := m.first
	if !m.one {
		at = m.cursor()
	}
	page := max(m.height-chrome, 1)
	switch key {
	case "up", "k":
		return at - 1, true
	case "down", "j":
		return at + 1, true
	case "pgup":
		return at - page, true
	case "pgdown", "space":
		return at + page, true
	case "home", "g":
		return 0, true
	case "end", "G":
		return len(m.report.Elections) + mostTerms, true
	}
	return 0, false
}

func (m *Model) move(to int) {
	if m.one {
		m.first = max(to, 0) // the view knows how many lines there are
		return
	}
	if n := len(m.report.Elections); n > 0 {
		m.chosen = m.report.Elections[min(max(to, 0), n-1)].Name
	}
}

// cursor returns the place of the chosen election in the list, or where it would be.
func (m *Model) cursor() int {
	for i, e := range m.report.Elections {
		if e.Name >= m.chosen {
			return i
		}
	}
	return max(len(m.report.Elections)-1, 0)
}

// election returns the chosen election.
func (m *Model) election() (*chronicle.Election, bool) {
	for i := range m.report.Elections {
		if m.report.Elections[i].Name == m.chosen {
			return &m.report.Elections[i], true
		}
	}
	return nil, false
}
