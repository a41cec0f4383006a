package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/seam"
)

// A script is a scenario as it is written: one command per line, comments after #,
// and below the divider the trace that it comes to.
type script struct {
	order     string // the name of the succession
	ttl       time.Duration
	stability time.Duration
	cast      []string // the candidates, in the order of their first lines
	steps     []step
}

const divider = "---\n"

// A step is one command.
type step struct {
	line int
	text string
	verb verb
	args args
}

// A verb is what a command does. In its usage, words in capitals stand for what a
// script gives in their place, and what is in brackets may be left out.
type verb struct {
	usage string
	setup func(*script, args) error // what it does when it is read
	do    func(*world, args) error  // and when it is played
	quiet bool                      // it does not show in the trace
	calm  bool                      // it is neither a fault nor a wish
}

// Args are what a command is given.
type args struct {
	id     string        // NAME of a newcomer, or ID of a candidate
	to     string        // TO: the candidate with this ID, whether or not it stands
	ids    []string      // IDS
	d      time.Duration // D
	order  string        // ORDER
	rank   int           // rank N, and so on
	drains time.Duration
	max    time.Duration
}

// verbs returns all commands.
func verbs() map[string]verb {
	return map[string]verb{
		"succession": {usage: "succession ORDER", setup: (*script).setOrder, quiet: true, calm: true},
		"ttl":        {usage: "ttl D", setup: (*script).setTTL, quiet: true, calm: true},
		"stability":  {usage: "stability D", setup: (*script).setStability, quiet: true, calm: true},
		"candidate":  {usage: "candidate NAME [rank N] [heirs IDS] [maxterm D] [drains D]", setup: (*script).enlist, do: (*world).enter, calm: true},
		"advance":    {usage: "advance D", do: (*world).advance, quiet: true, calm: true},
		"until":      {usage: "until ID leads D", do: (*world).until, quiet: true, calm: true},
		"kill":       {usage: "kill ID", do: (*world).kill},
		"stop":       {usage: "stop ID", do: (*world).stop},
		"restart":    {usage: "restart ID", do: (*world).restart},
		"cut":        {usage: "cut ID", do: (*world).cut},
		"heal":       {usage: "heal ID", do: (*world).heal},
		"pause":      {usage: "pause ID", do: (*world).pause},
		"continue":   {usage: "continue ID", do: (*world).goOn},
		"sick":       {usage: "sick ID", do: (*world).sicken},
		"well":       {usage: "well ID", do: (*world).recover},
		"resign":     {usage: "resign ID", do: (*world).resign},
		"transfer":   {usage: "transfer ID to TO", do: (*world).transfer},
		"heirs":      {usage: "heirs ID IDS", do: (*world).setHeirs},
		"request":    {usage: "request resign | request transfer to TO", do: (*world).request},
	}
}

// parseScript reads a script. Its error says in which line what is wrong, and what
// would be right.
func parseScript(text string) (*script, error) {
	s := &script{ttl: 10 * time.Second}
	known := verbs()
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		v, ok := known[words[0]]
		if !ok {
			return nil, fmt.Errorf("line %d: unknown command %q: want one of %s", i+1, words[0], strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		st := step{line: i + 1, text: strings.Join(words, " "), verb: v}
		var err error
		if st.args, err = s.match(v, words); err == nil && v.setup != nil {
			err = v.setup(s, st.args)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", st.line, st.text, err)
		}
		s.steps = append(s.steps, st)
	}
	if len(s.cast) == 0 {
		return nil, errors.New("nobody stands: want a line such as \"candidate a\"")
	}
	return s, nil
}

// match reads a command's words by its usage.
func (s *script) match(v verb, words []string) (a args, err error) {
	for usage := range strings.SplitSeq(v.usage, " | ") {
		a = args{}
		if err = s.matchOne(usage, words, &a); err == nil {
			return a, nil
		}
	}
	return a, fmt.Errorf("%w: want %q", err, v.usage)
}

// matchOne reads a command's words by one way to use it.
func (s *script) matchOne(usage string, words []string, a *args) error {
	must, may, _ := strings.Cut(usage, " [")
	for kind := range strings.FieldsSeq(must) {
		if len(words) == 0 {
			return fmt.Errorf("no %s is given", kind)
		}
		if err := s.take(a, kind, words[0]); err != nil {
			return err
		}
		words = words[1:]
	}
	for ; len(words) >= 2 && may != ""; words = words[2:] {
		if err := a.option(words[0], words[1]); err != nil {
			return err
		}
	}
	if len(words) > 0 {
		return fmt.Errorf("nothing is known of %q", words[0])
	}
	return nil
}

// take reads a word of a kind.
func (s *script) take(a *args, kind, word string) (err error) {
	switch kind {
	case "NAME":
		a.id = word
	case "ID":
		a.id = word
		if !slices.Contains(s.cast, word) {
			return fmt.Errorf("no candidate %q so far: have %q", word, s.cast)
		}
	case "TO":
		a.to = word
	case "IDS":
		a.ids = strings.Split(word, ",")
	case "D":
		a.d, err = span(word)
	case "ORDER":
		a.order = word
		if orders := seam.Orders(); orders[word] == nil {
			return fmt.Errorf("no order %q: have %q", word, slices.Sorted(maps.Keys(orders)))
		}
	default:
		if word != kind {
			return fmt.Errorf("%q is not %q", word, kind)
		}
	}
	return err
}

// option reads what may be said of a candidate.
func (a *args) option(name, word string) (err error) {
	switch name {
	case "rank":
		if a.rank, err = strconv.Atoi(word); err != nil {
			return fmt.Errorf("rank %q is no whole number", word)
		}
	case "heirs":
		a.ids = strings.Split(word, ",")
	case "maxterm":
		a.max, err = span(word)
	case "drains":
		a.drains, err = span(word)
	default:
		return fmt.Errorf("nothing is known of %q", name)
	}
	return err
}

// span reads a time that passes.
func span(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no time that passes, such as 1m30s", word)
	}
	return d, nil
}

func (s *script) setOrder(a args) error {
	if s.order != "" {
		return fmt.Errorf("it is %s already: every candidate of an election is given the same", s.order)
	}
	s.order = a.order
	return s.early()
}

func (s *script) setTTL(a args) error {
	s.ttl = a.d
	return s.early()
}

func (s *script) setStability(a args) error {
	s.stability = a.d
	return s.early()
}

// early refuses what comes too late.
func (s *script) early() error {
	if len(s.cast) > 0 {
		return errors.New("candidates stand already: say it before the first")
	}
	return nil
}

func (s *script) enlist(a args) error {
	switch {
	case s.order == "":
		return errors.New("no succession so far: say \"succession rank\", or another, before the first candidate")
	case slices.Contains(s.cast, a.id):
		return fmt.Errorf("%s stands already: use restart for one that was killed or stopped", a.id)
	}
	s.cast = append(s.cast, a.id)
	return nil
}

// succession returns the order by which the script's candidates go.
func (s *script) succession() election.Succession { return seam.Orders()[s.order] }
