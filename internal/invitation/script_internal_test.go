package invitation

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the scenarios come to into their files")

const divider = "---\n"

// A play is a network that a script drives, and what is written down of it.
type play struct {
	*network
	names    []string
	groups   map[Number]string // in the order in which they were entered first
	messages bool              // they are written down, but for heartbeats
	trace    strings.Builder
	rows     []row
}

// A row is what is drawn of one process: what begins when.
type row []stretch

type stretch struct {
	from time.Duration
	what rune
	mark bool // another group of the same leader begins
}

const (
	absent  = ' '
	between = '·'
	asleep  = 'z'
)

// commands are what a line of a script may do, by its first word.
func commands() map[string]func(*play, []string) error {
	each := func(do func(*play, int)) func(*play, []string) error {
		return func(p *play, words []string) error {
			for _, word := range words {
				i := p.index(ID(word))
				if i < 0 {
					return fmt.Errorf("no process %q: have %q", word, p.names)
				}
				do(p, i)
			}
			return nil
		}
	}
	return map[string]func(*play, []string) error{
		"start":    each(func(p *play, i int) { p.begins(i) }),
		"kill":     each(func(p *play, i int) { p.draw(i, absent); p.crash(i) }),
		"quit":     each(func(p *play, i int) { p.sync(i); p.step(i, Event{Kind: Quit}) }),
		"pause":    each(func(p *play, i int) { p.asleep[i] = true; p.draw(i, asleep) }),
		"continue": each((*play).goesOn),
		"messages": func(p *play, _ []string) error { p.messages = true; return nil },
		"heal":     func(p *play, _ []string) error { clear(p.deaf); return nil },
		"advance":  (*play).advance,
		"parts":    (*play).inParts,
		"deaf":     (*play).makeDeaf,
		"drain":    (*play).slow,
		"lose":     (*play).lose,
	}
}

func (p *play) goesOn(i int) {
	p.draw(i, p.shown(i))
	p.wakes(i)
}

func (p *play) advance(words []string) error {
	d, err := time.ParseDuration(strings.Join(words, ""))
	if err == nil {
		p.run(d)
	}
	return err
}

func (p *play) inParts(words []string) error {
	part := make([]int, len(p.actors))
	for k, word := range words {
		for name := range strings.SplitSeq(word, ",") {
			i := p.index(ID(name))
			if i < 0 {
				return fmt.Errorf("no process %q", name)
			}
			part[i] = k + 1
		}
	}
	p.parts(part)
	return nil
}

func (p *play) makeDeaf(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("want the sender and the one that does not hear it")
	}
	p.deaf[[2]int{p.index(ID(words[0])), p.index(ID(words[1]))}] = true
	return nil
}

func (p *play) slow(words []string) (err error) {
	if len(words) != 2 {
		return fmt.Errorf("want a process and how long its work takes to stop")
	}
	p.drain[p.index(ID(words[0]))], err = time.ParseDuration(words[1])
	return err
}

func (p *play) lose(words []string) (err error) {
	if len(words) != 2 {
		return fmt.Errorf("want a kind of message and how many are lost")
	}
	p.losing[words[0]], err = strconv.Atoi(words[1])
	return err
}

// perform plays a script and returns its trace and its drawing. The first line names the
// processes, which all know each other.
func perform(t *testing.T, text string) string {
	p := &play{groups: map[Number]string{}}
	known := commands()
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "processes" {
			p.cast(words[1:])
			continue
		}
		do, ok := known[words[0]]
		require.True(t, ok, "line %d: no command %q: want processes, or one of %q", i+1, words[0], slices.Sorted(maps.Keys(known)))
		require.NotNil(t, p.network, "line %d: nobody is there: want a line such as \"processes 1 2\" first", i+1)
		if words[0] != "advance" && words[0] != "messages" {
			p.note("> %s", strings.Join(words, " "))
		}
		require.NoError(t, do(p, words[1:]), "line %d: %s", i+1, line)
		require.Empty(t, p.trouble, "line %d: %s", i+1, line)
	}
	p.sum()
	return p.trace.String() + divider + p.drawing()
}

func (p *play) cast(names []string) {
	p.names = names
	p.network = newNetwork(len(names), DefaultTiming(), 1, flaws{})
	p.rows = make([]row, len(names))
	for i, name := range names {
		p.actors[i].id, p.actors[i].cfg.Self = ID(name), ID(name)
	}
	p.latency = func() time.Duration { return 10 * time.Millisecond }
	hears, post := p.told, p.post
	p.told = func(i int, e Effect) { p.tells(i, e); hears(i, e) }
	p.post = func(f flight) { p.writes(f); post(f) }
}

func (p *play) note(format string, a ...any) {
	fmt.Fprintf(&p.trace, "%8.2fs  %s\n", p.now.Seconds(), fmt.Sprintf(format, a...))
}

// writes notes a message.
func (p *play) writes(f flight) {
	kind := kindOf(f.m)
	if h, ok := f.m.(Heartbeat); ok && len(h.Members) > 0 {
		kind = fmt.Sprintf("heartbeat, formed of %s", list(h.Members))
	} else if kind == "heartbeat" || kind == "alive" {
		return
	}
	if p.messages {
		p.note("    %s → %s: %s", p.names[f.from], p.names[f.to], kind)
	}
}

func list(ids []ID) string {
	var all []string
	for _, id := range ids {
		all = append(all, string(id))
	}
	return strings.Join(all, " ")
}

// tells notes what a process is told.
func (p *play) tells(i int, e Effect) {
	if e.Kind == Send {
		return
	}
	number := e.Group.Number
	name, ok := p.groups[number]
	if !ok {
		name = fmt.Sprintf("g%d", len(p.groups)+1)
		p.groups[number] = name
	}
	switch {
	case e.Kind == Leave:
		p.note("%s leaves %s", p.names[i], name)
	case e.Group.Leader() == p.actors[i].id:
		p.note("%s leads %s: %s", p.names[i], name, list(e.Group.Members))
	default:
		p.note("%s is in %s: %s", p.names[i], name, list(e.Group.Members))
	}
	if !p.asleep[i] {
		p.draw(i, p.shown(i))
	}
}

// shown is how a process is drawn now.
func (p *play) shown(i int) rune {
	switch a := &p.actors[i]; {
	case !a.alive, a.node.stage == quit:
		return absent
	case a.in.IsZero():
		return between
	default:
		return []rune(string(a.in.By))[0]
	}
}

func (p *play) draw(i int, what rune) {
	r := p.rows[i]
	again := slices.ContainsFunc(r, func(s stretch) bool { return s.what == what }) && what != between && what != absent && what != asleep
	p.rows[i] = append(r, stretch{p.now, what, again})
}

// sum notes how many messages there were.
func (p *play) sum() {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(p.sent)) {
		all = append(all, fmt.Sprintf("%d %s", p.sent[kind], kind))
	}
	p.note("messages: %s", strings.Join(all, ", "))
}

const columns = 70

// drawing shows in which group each process was: the first letter of its leader, and a bar
// where another group of the same leader begins.
func (p *play) drawing() string {
	var b strings.Builder
	width := 0
	for _, name := range p.names {
		width = max(width, len(name))
	}
	column := func(d time.Duration) int { return min(int(int64(d)*columns/max(int64(p.now), 1)), columns-1) }
	for i, name := range p.names {
		line := slices.Repeat([]rune{absent}, columns)
		for _, s := range p.rows[i] {
			for k := column(s.from); k < columns; k++ {
				line[k] = s.what
			}
			if s.mark && column(s.from) > 0 && line[column(s.from)-1] == s.what {
				line[column(s.from)] = '|'
			}
		}
		fmt.Fprintf(&b, "%-*s  %s\n", width, name, strings.TrimRight(string(line), " "))
	}
	fmt.Fprintf(&b, "%*s  %-*s%s\n", width, "", columns-6, "0s", p.now)
	return b.String()
}

// The scenarios come to what stands in their files.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			top, want, _ := strings.Cut(string(text), divider)
			got := perform(t, top)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(top+divider+got), 0o644))
				return
			}
			require.Equal(t, want, got, "if this is as it should be: go test ./internal/invitation -run TestScenarios -update")
		})
	}
}
