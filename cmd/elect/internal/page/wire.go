package page

import (
	"time"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/internal/boottime"
)

// A state is what a browser is told: everything that is known, or what has changed. Times
// without a zone are milliseconds since the chronicle began.
type state struct {
	Store  string    `json:"store"`
	Window float64   `json:"window"`
	Now    float64   `json:"now"`
	Clock  time.Time `json:"clock"` // this host's, now

	All       bool       `json:"all"` // the elections are all that there are
	Elections []election `json:"elections"`
	Search    search     `json:"search"`
	Over      string     `json:"over,omitempty"` // nothing more will happen
	Well      bool       `json:"well,omitempty"` // and all is well
}

type search struct {
	On      bool   `json:"on"`
	Trouble string `json:"trouble,omitempty"`
	Left    bool   `json:"left,omitempty"`
}

type election struct {
	Name           string      `json:"name"`
	Spells         []spell     `json:"spells"`
	Heirs          []spell     `json:"heirs"`
	Heir           string      `json:"heir,omitempty"`
	Hold           time.Time   `json:"hold,omitzero"`
	Trouble        string      `json:"trouble,omitempty"`
	Candidates     []candidate `json:"candidates,omitempty"`
	CandidateCount int         `json:"candidateCount,omitempty"` // how many candidates there are in all
	Unlisted       string      `json:"unlisted,omitempty"`       // why the candidates cannot be listed
	Marks          []mark      `json:"marks,omitempty"`
}

type spell struct {
	State  string    `json:"state,omitempty"`
	From   float64   `json:"from"`
	To     *float64  `json:"to,omitempty"`
	Found  bool      `json:"found,omitempty"`
	Told   bool      `json:"told,omitempty"`
	ID     string    `json:"id,omitempty"`
	Value  string    `json:"value,omitempty"`
	Token  uint64    `json:"token,string,omitempty"` // as text: larger than what a browser can count
	Rank   int       `json:"rank,omitempty"`
	Heirs  []string  `json:"heirs,omitempty"`
	TTL    float64   `json:"ttl,omitempty"`
	Since  time.Time `json:"since,omitzero"` // by the clock of the one who leads
	End    string    `json:"end,omitempty"`
	Reason string    `json:"reason,omitempty"` // it ended, if its leader told
	How    string    `json:"how,omitempty"`    // it ended, in words
}

type candidate struct {
	ID      string    `json:"id"`
	State   string    `json:"state"`
	Rank    int       `json:"rank,omitempty"`
	Value   string    `json:"value,omitempty"`
	Since   time.Time `json:"since,omitzero"` // by its own clock
	Foreign bool      `json:"foreign,omitempty"`
}

type mark struct {
	At   float64 `json:"at"`
	Who  string  `json:"who"`
	What string  `json:"what"`
	Sign string  `json:"sign"`
}

// state returns what has changed after seq, or everything, and the number of the newest change
// in it.
func (p *Page) state(r chronicle.Report) state {
	now := boottime.Now()
	s := state{
		Store: p.store, Window: milliseconds(p.window), Now: p.when(now), Clock: time.Now(),
		All: r.All, Elections: []election{}, Search: search(r.Search),
	}
	p.end.tell(&s, now)
	for i := range r.Elections {
		s.Elections = append(s.Elections, p.election(&r.Elections[i]))
	}
	return s
}

func (p *Page) election(e *chronicle.Election) election {
	shown := election{Name: e.Name, Spells: p.spells(e.Spells), Heirs: p.spells(e.Heirs), Hold: e.Hold, Trouble: e.Trouble, CandidateCount: e.CandidateCount, Unlisted: e.Unlisted}
	for i := range shown.Spells {
		shown.Spells[i].How = e.How(i)
	}
	if heir, ok := e.Heir(); ok {
		shown.Heir = heir.Owner.ID
	}
	for _, c := range e.Candidates {
		shown.Candidates = append(shown.Candidates, candidate{c.ID, e.Standing(c), c.Rank, c.Value, c.Since, c.Foreign})
	}
	for _, m := range e.Marks {
		shown.Marks = append(shown.Marks, mark{At: p.when(m.At), Who: m.Who, What: m.What, Sign: m.Sign})
	}
	return shown
}

func (p *Page) spells(all []chronicle.Spell) []spell {
	shown := []spell{}
	for _, s := range all {
		next := spell{
			State: string(s.State), From: p.when(s.From), Found: s.Found, Told: s.Told, End: string(s.End),
			ID: s.Owner.ID, Value: s.Owner.Value, Token: s.Owner.Token, Rank: s.Owner.Rank, Heirs: s.Owner.Heirs,
			TTL: milliseconds(s.Owner.TTL), Since: s.Owner.Since, Reason: string(s.Reason),
		}
		if s.To != 0 {
			to := p.when(s.To)
			next.To = &to
		}
		shown = append(shown, next)
	}
	return shown
}

func (p *Page) when(at time.Duration) float64 { return milliseconds(at - p.chronicle.Since()) }

// milliseconds are what browsers count in. Two things that happened at different times have
// different ones.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
