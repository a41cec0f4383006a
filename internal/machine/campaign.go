package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/electkv/election/kv"
)

// A Config is what does not change in a campaign.
type Config struct {
	ID     string
	Nonce  string // a text that is in this campaign's signatures and in no others
	Value  string
	Rank   int
	Heirs  []string
	Seed   uint64 // of what is drawn at random; zero for none
	Order  Order  // nil is the order in which candidates came
	NoHeir bool   // there is to be no heir
	Health bool   // there is a health check
	Lines  bool   // the store keeps lines (kv.Queue)
	Steps  bool   // a hand-over takes two steps: a read of the heir's key, and a write
	Timing

	Stability time.Duration
	MaxTerm   time.Duration // zero for terms of any length
	Fading    time.Duration // how long a record may outlive its owner's last refresh
}

// A Stage is how far a campaign has come.
type Stage uint8

// The stages.
const (
	Off      Stage = iota
	Standing       // it competes
	Leading        // its term goes on
	Over           // its term has ended; the record is kept while work goes on, if that is asked
	Quitting       // what is left of it is being removed, or handed over
	Done           // it is over
)

func (s Stage) String() string {
	return [...]string{"off", "standing", "leading", "over", "quitting", "done"}[s]
}

// A Campaign is one attempt of a candidate to be elected, and the term that it wins. It is
// a value: [Step] returns another one.
type Campaign struct {
	cfg   *Config
	Lead  Lock
	Place Lock

	Stage     Stage
	Cause     Cause // why the term has ended
	Once      bool  // one attempt, and no more
	Drain     bool  // the record is kept after the term until it is released
	Early     bool  // the leader's key is to be tried before the heir's
	Calling   bool  // the heir is being asked whether it is alive
	Look      bool  // read the heir's key before the hand-over
	Backoff   uint8 // of heirs that displace each other, which no consistent order allows
	Overtaken uint8 // how often in a row a candidate that had not waited got the heir's place

	Serial   uint32 // of the signature drawn last
	Requests uint32 // sent so far
	Random   uint64
	Memory   Memory

	Rest    time.Duration // before the next bid for the heir's place
	HoldOff time.Duration // how much longer than others to wait before we displace an heir
	Former  string        // the signature that we had as heir before

	Checkup     Checkup
	VacantSince moment // of the heir's key

	Heir       Ref // the heir's record, as the leader sees it
	HeirSince  Instant
	Preference Preference
	CallAgain  moment // the heir is not called before
	Began      Instant
	Ended      Instant
}

// A moment is a time on the monotonic clock, or none if it is zero.
type moment time.Duration

func momentAt(d time.Duration) moment { return moment(d + 1) }
func (m moment) set() bool            { return m != 0 }
func (m moment) at() time.Duration    { return time.Duration(m - 1) }

// New returns a campaign that has not begun.
func New(cfg *Config, memory Memory) *Campaign {
	c := &Campaign{cfg: cfg, Random: cfg.Seed, Memory: memory}
	c.Lead.Key, c.Place.Key = Lead, Place
	c.Lead.Next, c.Place.Next, c.Preference.Since = never, never, never
	return c
}

// A turn is one step of a campaign at one instant.
type turn struct {
	*Campaign
	now  Instant
	wall int64
	past string
	out  []Effect
}

func (t *turn) emit(e Effect) { t.out = append(t.out, e) }

func (t *turn) lock(k Key) *Lock {
	if k == Place {
		return &t.Place
	}
	return &t.Lead
}

// sign returns a signature that was never used before. By the nonce a campaign recognises
// its own records.
func (t *turn) sign() string {
	t.Serial++
	return fmt.Sprintf("%s/%s.%d", t.cfg.ID, t.cfg.Nonce, t.Serial)
}

// Wrote reports whether this campaign wrote a record, under whatever signature.
func (c *Campaign) Wrote(rec kv.Record) bool {
	head, tail, ok := strings.Cut(rec.Signature, "/"+c.cfg.Nonce+".")
	return ok && !rec.Foreign && head == c.cfg.ID && !strings.Contains(tail, "/")
}

// draw returns a number at random (xorshift64, Marsaglia, "Xorshift RNGs", 2003).
func (t *turn) draw() uint64 {
	x := t.Random
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	t.Random = x
	return x
}

// jitter returns a duration of [0, n), at random.
func (t *turn) jitter(n time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	return time.Duration(t.draw() % uint64(n)) //nolint:gosec // n is positive
}
