package sim

import (
	"encoding/json"
	"math/bits"
	"slices"
	"time"
)

// A Schedule is one run of the world, as plain data: all that is not said here
// follows from the seed.
type Schedule struct {
	Seed    uint64        // of delays, losses, jitter and dwell times
	TTL     time.Duration // that candidates ask for
	Margin  time.Duration // zero means the engine's default
	Horizon time.Duration // when all candidates are told to leave
	Delay   time.Duration // at most, of a message one way, if nothing is wrong
	// Unfenced is set if the resource takes writes under any token.
	Unfenced bool
	Succession
	Store  StorePlan
	Nodes  []NodePlan
	Faults []Fault
}

// A StorePlan says what kind of store it is.
type StorePlan struct {
	Expiry Expiry
	Rate   PPM           // of its clock
	Least  time.Duration // the shortest TTL that it grants
	Most   time.Duration // the longest, whatever was asked; zero means any
	Lazy   time.Duration // how much longer than granted a record may live
	Lines  bool          // candidates can wait in line
	Leases bool          // what keeps records alive has a name, and can keep several
	Whole  bool          // it hands over in one step, if it judges expiry itself
	// Rude is set if a candidate that joins the line comes before all that wait there.
	Rude bool
	// Still is set if a refresh leaves the revision as it is where observers judge.
	Still bool
}

// Expiry is who judges that a record has expired.
type Expiry string

// Who may judge.
const (
	ByStore    Expiry = ""         // the store, by its own clock
	ByObserver Expiry = "observer" // a candidate that has seen one revision for long enough
)

// A NodePlan says what kind of candidate it is.
type NodePlan struct {
	Style Style
	Rate  PPM           // of its host's clocks
	Dwell time.Duration // at most, until it gives a term up by itself; zero means never
	Lag   time.Duration // at most, from the end of a term until its work has stopped
	Deaf  bool          // its host has no clock that counts suspends
	Leap  Window        // at From its wall clock, by which it judges records, is set forward by To
	Asks  Asks

	Joins time.Duration // when it comes, after all others before it
	Rank  int
	Heirs []string // whom it wants after it, at first
	Plain bool     // it uses no succession
}

// Asks says whom the work asks before each step whether it may go on. Each can
// answer for the other, and would hide that the other does not.
type Asks string

// Whom the work asks.
const (
	AskBoth    Asks = ""
	AskContext Asks = "context"
	AskTerm    Asks = "term"
)

// A Style is how a program uses the engine.
type Style string

// The styles.
const (
	ByRun       Style = "run"
	ByCallbacks Style = "callbacks"
	ByCampaign  Style = "campaign"
)

// A Fault is something that goes wrong from From to To.
type Fault struct {
	Kind Kind
	Who  int // index of the candidate; Everybody; Leader
	Window
	Size   time.Duration // of delays, pauses and health checks
	Chance int           // in percent, of losses and duplicates
	Op     string        // of pauses at one call; how an illness shows
	Safe   string        // which one Foreign and Remove are about, as history.Event.Safe has it
}

// Whom a fault concerns, if not one candidate by its index.
const (
	Everybody = -1
	Leader    = -2 // the candidate that leads at From, if any
)

// A Kind is what goes wrong.
type Kind string

// What may go wrong with a candidate's network.
const (
	Delay       Kind = "delay"        // each message takes up to Size longer
	Lose        Kind = "lose"         // messages are lost with Chance, either way
	Duplicate   Kind = "duplicate"    // requests arrive again with Chance, up to Size later
	CutRequests Kind = "cut requests" // nothing gets to the store
	CutReplies  Kind = "cut replies"  // nothing comes back from it
)

// What may go wrong with a candidate.
const (
	Freeze      Kind = "freeze"       // it stands still at every store call and step of work
	Suspend     Kind = "suspend"      // the same, and its monotonic clock stands still
	PauseBefore Kind = "pause before" // it stands still for Size before its next Op is sent
	PauseAfter  Kind = "pause after"  // it stands still for Size after the answer to its next Op
	LoseReply   Kind = "lose reply"   // the answer to its next Op is lost
	Away        Kind = "away"         // it is told to leave, and comes back
	Crash       Kind = "crash"        // the same, and nothing that it sends or is sent arrives
	Leave       Kind = "leave"        // it is told to leave while its next Op is on its way, and comes back
	Ill         Kind = "ill"          // its health check fails, at once if Op does not say otherwise
)

// How an illness shows.
const (
	Hangs = "hangs" // the health check returns when its context ends
	Lags  = "lags"  // it says after Size that all is well, whatever its context says
)

// What may go wrong with the store.
const (
	Restart Kind = "restart" // it answers nothing, and breaks its watches
	Anew    Kind = "anew"    // the same, and all records live anew afterwards
	Foreign Kind = "foreign" // an old client waits for the safe, and then holds it
	Remove  Kind = "remove"  // an operator deletes the record
)

// String returns the schedule as JSON, which [Parse] reads.
func (s *Schedule) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Parse returns the schedule that text is of.
func Parse(text string) (s Schedule, err error) {
	err = json.Unmarshal([]byte(text), &s)
	return s, err
}

// Life returns how long the store keeps a dead candidate's record, on its clock. Where observers
// judge, it is the time until the last of them has judged the record, even one that could not
// watch it while it lived.
func (s *Schedule) Life() time.Duration {
	if s.Store.Expiry == ByObserver {
		return 2 * s.Store.grant(s.TTL)
	}
	return s.Store.grant(s.TTL) + s.Store.Lazy
}

// grant returns the TTL that the store grants for ttl.
func (p StorePlan) grant(ttl time.Duration) time.Duration {
	if granted := max(ttl, p.Least); p.Most == 0 || granted < p.Most {
		return granted
	}
	return p.Most
}

// Bound returns the time after the last fault within which a candidate must lead: the life of a
// record that the last message on its way writes, by a slow clock; the time for a leader's
// work to stop; and a few pauses between tries of candidates that the store does not tell of
// the vacancy.
func (s *Schedule) Bound() time.Duration {
	lag, late := time.Duration(0), s.Delay
	for _, n := range s.Nodes {
		lag = max(lag, n.Lag)
	}
	for _, f := range s.Faults {
		if f.Kind == Delay || f.Kind == Duplicate {
			late = max(late, s.Delay+2*f.Size)
		}
	}
	life := s.Life()
	if s.Order != NoOrder { // first there must be an heir
		life += life + s.TTL
	}
	return life + life/50 + late + lag + 2*s.TTL + 10*s.Delay
}

// Turn returns for how long a record may be in the safe without its owner leading. The
// owner calls Stay for as long as it would trust the record, and not after it has
// stood still in between. The last of these calls may be under way for long, and extends
// the record by one life. Where observers judge, the record stays until one of them has
// judged it.
func (s *Schedule) Turn() time.Duration {
	worst, slow := map[Kind]time.Duration{}, s.Delay
	var anew, alone time.Duration
	life := s.Life() + s.Life()/50
	for _, f := range s.Faults {
		if s.Store.Expiry == ByObserver {
			alone += f.To - f.From
		}
		switch f.Kind {
		case Freeze, Suspend:
			worst[f.Kind] = max(worst[f.Kind], f.To-f.From)
		case PauseBefore, PauseAfter:
			worst[f.Kind] = max(worst[f.Kind], f.Size)
		case Delay, Duplicate:
			slow = max(slow, s.Delay+2*f.Size)
		case Anew:
			anew += f.To - f.From + life
		}
	}
	still := time.Duration(0)
	for _, d := range worst {
		still += d
	}
	return 2*life + still + slow + anew + alone
}

// Calm returns when nothing is wrong for longer than Bound: each window begins
// with the end of a fault.
func (s *Schedule) Calm() []Window {
	calm := []Window{}
	for _, f := range s.Faults {
		w := Window{f.End(), s.Horizon}
		for _, other := range s.Faults {
			switch {
			case other.From >= w.From:
				w.To = min(w.To, other.From)
			case other.End() > w.From:
				w.To = w.From // it goes on
			}
		}
		if w.To-w.From > s.Bound() && !slices.Contains(calm, w) {
			calm = append(calm, w)
		}
	}
	return calm
}

// End returns when the fault is over.
func (f Fault) End() time.Duration {
	if f.Kind == PauseBefore || f.Kind == PauseAfter || f.Kind == Ill {
		return f.To + f.Size
	}
	return f.To
}

// roll returns a number that the seed decides for some keys: the same for the
// same keys, whatever else happens in the world.
func (s *Schedule) roll(keys ...uint64) uint64 {
	h := s.Seed
	for _, key := range keys {
		h = mix(h ^ mix(key+0x9e3779b97f4a7c15))
	}
	return h
}

// below returns a duration in [0, n) that the seed decides.
func (s *Schedule) below(n time.Duration, keys ...uint64) time.Duration {
	if n <= 0 {
		return 0
	}
	hi, _ := bits.Mul64(s.roll(keys...), uint64(n))
	return time.Duration(hi)
}

// chance reports whether something happens that happens with so many percent.
func (s *Schedule) chance(percent int, keys ...uint64) bool {
	return int(s.roll(keys...)%100) < percent
}

// mix is the finalizer of splitmix64: every bit of x changes every bit of the
// result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
