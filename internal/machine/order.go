package machine

import (
	"math"
	"time"

	"github.com/electkv/election/kv"
)

// A Contender is a candidate or a leader, as the order of succession sees it.
type Contender struct {
	ID    string
	Rank  int
	Heirs []string // of a leader: the candidates that should follow it, in order
}

// An Order reports whether candidate a is to come before candidate b when leader's term
// ends.
type Order func(leader, a, b Contender) bool

// firstCome reports whether no candidate comes before another.
func (c *Config) firstCome() bool { return c.Order == nil }

func (c *Config) before(leader, a, b Contender) bool { return c.Order != nil && c.Order(leader, a, b) }

func (c *Config) me() Contender { return Contender{ID: c.ID, Rank: c.Rank} }

// size weighs who holds a key that we want: the leader as its heir, or an heir that may be
// to be displaced.
func (t *turn) size(l *Lock, rec kv.Record) {
	if l.Key == Lead {
		if t.Place.Phase == Owner && !rec.Foreign {
			t.Memory.leads(LeaderOf(rec), t.now)
		}
		t.mirror()
		return
	}
	t.overtake(rec)
	if t.displaces(rec) {
		l.Rival = RefTo(rec)
		l.Next = t.now.Mono + t.deference(l)
	}
}

// displaces reports whether we come before an heir, and are to take its place.
func (t *turn) displaces(rec kv.Record) bool {
	if rec.Foreign || rec.Permanent {
		return false
	}
	n := NoteOf(rec)
	switch {
	case n.Calls != "":
		return n.Calls == t.cfg.ID
	case t.cfg.firstCome(), n.Under == nil: // it does not know itself who leads
		return false
	}
	t.Memory.hear(*n.Under, t.now)
	if n.byCall() || n.Under.ID == t.cfg.ID { // our own term, which has ended early: others first
		return false
	}
	return t.cfg.before(n.Under.contender(), t.cfg.me(), Contender{ID: IDOf(rec.Signature), Rank: n.Rank})
}

// overtake notes whether a candidate that had not waited has taken the heir's place: for example
// a program that campaigns again and again, and whose work is done at once. A waiting candidate
// bids twice as soon after each such case. Otherwise it would wait for ever.
func (t *turn) overtake(rec kv.Record) {
	if !t.VacantSince.set() {
		return
	}
	if NoteOf(rec).Waited || t.now.Mono-t.VacantSince.at() > t.lag() {
		t.Overtaken = 0
	} else {
		t.Overtaken = min(t.Overtaken+1, 30)
	}
	t.VacantSince = 0
}

// hesitation spreads the claims of candidates that all saw a key become vacant, so that
// most of them see the next owner before they ask.
func (t *turn) hesitation(l *Lock) time.Duration {
	if l.Key == Place {
		t.VacantSince = momentAt(t.now.Mono)
		return t.deference(l)
	}
	if t.contended(l) {
		return t.stage(l)
	}
	return 0
}

// contended reports whether others may see a vacancy of a key in this moment, of whom none
// is preferred.
func (t *turn) contended(l *Lock) bool {
	return l.Waited && !l.Blind && (t.cfg.NoHeir || l.Key == Place && t.cfg.firstCome() || l.Key == Lead && t.heirless())
}

// deference is how long a candidate leaves the heir's place to others: the longer the lower
// it ranks, so that candidates of lower rank mostly find that another has come before them.
// It is the delay δ of the candidate/ordinary algorithm. A candidate that is called comes at
// once. Where an heir has gone, a crowd may wait; where none was seen, only those may be
// there who have just come as well.
func (t *turn) deference(l *Lock) time.Duration {
	rival := l.Rival.Record()
	switch {
	case NoteOf(rival).Calls != "":
		return 0
	case rival.Signature != "":
		return t.lag() + t.jitter(t.lag()+1) + t.HoldOff
	case t.contended(l):
		return t.stage(l)
	case l.Waited: // a leader has just been elected: there is time
		return (t.lag() + t.jitter(t.cfg.Crowd+1)) >> t.Overtaken
	case t.mayFollow():
		return t.lag() + t.jitter(t.lag()+1)
	}
	return 0
}

// mayFollow reports whether the order may put a candidate before us that we do not know of
// yet. It tries contenders at the ends of all IDs and ranks.
func (t *turn) mayFollow() bool {
	last := t.Memory.leader().contender()
	for _, id := range []string{"\x00", "\U0010ffff"} {
		for _, rank := range []int{math.MinInt, math.MaxInt} {
			if t.cfg.before(last, Contender{ID: id, Rank: rank}, t.cfg.me()) {
				return true
			}
		}
	}
	return false
}

// lag is the least that candidates of our rank wait where others may wait too.
func (t *turn) lag() time.Duration {
	return t.cfg.Spread / time.Duration(1+max(t.cfg.Rank, 0))
}

// courtesy is how long a new heir leaves a vacancy of the leader's key to candidates that may
// come before it.
func (t *turn) courtesy() time.Duration {
	if !t.Place.Waited && !t.mayFollow() {
		return 0
	}
	return 2 * t.cfg.Spread
}

// draftNote returns the note that goes with a claim.
func (t *turn) draftNote(l *Lock) string {
	n := Note{Rank: t.cfg.Rank, Heirs: t.cfg.Heirs, Since: t.wall}
	switch {
	case t.cfg.NoHeir:
		return Note{Since: t.wall}.Text()
	case l.Key == Lead:
		last := t.Memory.leader()
		if len(n.Heirs) == 0 {
			n.Heirs = last.Heirs
		}
		n.Strikes = t.Memory.strikes(last, t.now, t.cfg.Stability, t.cfg.TTL, t.cfg.Fading)
		n.Past = t.past
	default: // the heir that is displaced, if there is one, has reported the leader
		rival := NoteOf(l.Rival.Record())
		n.Waited = l.Waited
		if n.Under = rival.Under; rival.Calls != "" && n.Under != nil {
			n.Called, n.Formerly = n.Under.Token, t.Former
		}
	}
	return n.Text()
}

// mirror has the heir publish who leads, or led last. All others learn it from that.
func (t *turn) mirror() {
	if t.cfg.firstCome() || t.Place.Phase != Owner || t.Place.Mute {
		return
	}
	n, led := NoteOf(t.Place.Remains.Record()), t.Memory.leader()
	n.Under = &led
	t.Place.Text.Note = n.Text()
}

// noteFor returns the note with which the heir leads when we hand over to it.
func (t *turn) noteFor(heir kv.Record) string {
	mine, theirs := NoteOf(t.Lead.Remains.Record()), NoteOf(heir)
	n := Note{Rank: theirs.Rank, Heirs: theirs.Heirs, Since: t.wall, Past: handedOver(t.past)}
	if len(n.Heirs) == 0 {
		n.Heirs = mine.Heirs
	}
	lasted := t.Ended.Since(t.Began)
	failed := lasted < t.cfg.Stability && t.Cause != Resigned
	n.Strikes = judge(mine.Strikes, t.cfg.ID, lasted, t.cfg.Stability, failed)
	return n.Text()
}
