package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// A Crowd is a number of clients that want the same safes at the same time, and
// do whatever comes to mind: they create, publish, hand over, refresh, delete
// and read, with records that they have just seen and with old ones.
type Crowd struct {
	// Seed decides what the clients do. How their calls interleave is the
	// machine's.
	Seed uint64
	// Ops is how many operations they do in all.
	Ops int
	// OpsPerSafe is after how many operations they go on to the next safe. A
	// history is judged the faster, the shorter the stories are.
	OpsPerSafe int
	// MaxUnknown is at how many unknown outcomes they leave a safe early. Those
	// under way may add one a client.
	MaxUnknown int
	// TTL is what records are written with.
	TTL time.Duration
	// Timeout bounds each operation.
	Timeout time.Duration
	// Prefix begins each safe's name.
	Prefix string
	// Whole has them hand over in one step too, where a store is a [kv.HandOver]: to
	// heirs in a safe beside, which others empty and change. And it has them delete on
	// condition that this is vacant, where a store is a [kv.Vacate].
	Whole bool
	// Share has them create some of their records so that they may share a lease
	// ([kv.Record.Shared]), and refresh theirs by [kv.Batch.RefreshAll] too, with Share and
	// without, together with what they left in the safe before. Then no client refreshes the
	// record of another: no other store knows of its lease.
	Share bool
	// Rest, if not nil, is called by a client between two operations; unknown
	// says whether the outcome of the first is. It may wait.
	Rest func(ctx context.Context, client int, unknown bool)
}

// Run lets each of the stores be used by one client, and returns when all is
// done or ctx has ended.
func (c Crowd) Run(ctx context.Context, stores ...kv.Store) {
	work := &work{crowd: c}
	var all sync.WaitGroup
	for i, store := range stores {
		one := &member{
			work:   work,
			number: i,
			store:  store,
			random: rand.New(rand.NewPCG(c.Seed, uint64(i))),
		}
		all.Go(func() { one.run(ctx) })
	}
	all.Wait()
}

// work is what is left to do.
type work struct {
	crowd Crowd

	mu            sync.Mutex
	done          int // operations given out
	safe          int
	here, unknown int // operations given out and unknown outcomes of this safe
}

// next returns the safe for the next operation, and false if there is none.
func (w *work) next() (name string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done >= w.crowd.Ops {
		return "", false
	}
	if w.here >= w.crowd.OpsPerSafe || w.unknown >= w.crowd.MaxUnknown {
		w.safe++
		w.here, w.unknown = 0, 0
	}
	w.done++
	w.here++
	return w.name(), true
}

func (w *work) name() string { return fmt.Sprintf("%s%d", w.crowd.Prefix, w.safe) }

// told notes that an operation's outcome is unknown.
func (w *work) told(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == w.name() {
		w.unknown++
	}
}

// A member is one of the crowd.
type member struct {
	work   *work
	number int
	store  kv.Store
	random *rand.Rand
	writes int // so many records made

	name       string
	seen, past kv.Record // what was last seen in the safe, and before that
	heir       kv.Record // of this member, in the safe beside
	left       kv.Held   // of this member, in an earlier safe
	unsure     bool      // the last outcome is unknown
}

func (m *member) run(ctx context.Context) {
	for ctx.Err() == nil {
		name, ok := m.work.next()
		if !ok {
			return
		}
		if name != m.name {
			if m.signs(m.seen) {
				m.left = kv.Held{Name: m.name, Record: m.seen}
			}
			m.name, m.seen, m.past, m.heir = name, kv.Record{}, kv.Record{}, kv.Record{}
		}
		unknown := m.act(ctx)
		if unknown {
			m.work.told(name)
		}
		if rest := m.work.crowd.Rest; rest != nil {
			rest(ctx, m.number, unknown)
		}
	}
}

// act does one operation and reports whether its outcome is unknown.
func (m *member) act(ctx context.Context) (unknown bool) {
	ctx, cancel := context.WithTimeout(ctx, m.work.crowd.Timeout)
	defer cancel()
	got, err := m.operate(ctx)
	if err == nil && got != (kv.Record{}) && got != m.seen {
		m.seen, m.past = got, m.seen
	}
	m.unsure = outcome(err) == Unknown
	return m.unsure
}

// operate calls one operation. Most of the time it uses what was seen last.
// After an outcome that is unknown it likes to look.
func (m *member) operate(ctx context.Context) (kv.Record, error) {
	rec := m.seen
	if m.past != (kv.Record{}) && m.random.IntN(6) == 0 {
		rec = m.past
	}
	dice := m.random.IntN(100)
	if rec == (kv.Record{}) && dice >= 50 {
		dice %= 50
	}
	switch {
	case m.moved() && dice >= 20: // what it has moved from is worth nothing
		rec, m.past = m.past, kv.Record{}
		return m.publish(ctx, rec, dice)
	case m.work.crowd.Share && (dice >= 78 && dice < 88 || m.signs(rec) && m.random.IntN(3) == 0):
		return m.refresh(ctx, rec)
	case dice < 28, m.unsure && dice%2 == 0:
		return m.store.Get(ctx, m.name)
	case dice < 50:
		next := m.signed()
		next.Shared = m.work.crowd.Share && dice%8 == 0
		return m.store.Create(ctx, m.name, next)
	case dice < 66:
		return m.publish(ctx, rec, dice)
	case dice < 78 && m.work.crowd.Whole && dice%4 != 0:
		return m.handOver(ctx, rec)
	case dice < 78:
		return m.store.Swap(ctx, m.name, rec, m.signed())
	case dice < 88:
		return m.store.Refresh(ctx, m.name, rec)
	case dice < 94 && m.work.crowd.Whole:
		return kv.Record{}, m.vacate(ctx, rec)
	default:
		return kv.Record{}, m.store.Delete(ctx, m.name, rec)
	}
}

// vacate deletes a record if this member has no heir in the safe beside, where the store can
// do so in one step.
func (m *member) vacate(ctx context.Context, rec kv.Record) error {
	if whole, ok := m.store.(kv.Vacate); ok {
		_, err := whole.Vacate(ctx, m.name, rec, m.place())
		return err
	}
	return m.store.Delete(ctx, m.name, rec)
}

// place returns the name of the safe beside that this member's heir has.
func (m *member) place() string { return fmt.Sprintf("%s:heir-%d", m.name, m.number) }

// publish publishes a new note under a record, and by odd dice a new value too.
func (m *member) publish(ctx context.Context, rec kv.Record, dice int) (kv.Record, error) {
	next := m.signed()
	next.Signature, next.TTL = rec.Signature, rec.TTL
	if dice%2 == 0 {
		next.Value = rec.Value
	}
	return m.store.Swap(ctx, m.name, rec, next)
}

// moved reports whether what was last seen differs from what was seen before by its revision alone.
func (m *member) moved() bool {
	return m.past.Owns(m.seen) && m.past.Value == m.seen.Value && m.past.Note == m.seen.Note
}

// handOver hands over to this member's heir, which has a safe beside. Now and then it
// empties that of another member, or has its own heir give up and hands over all the
// same. An heir to whom that was perhaps done already has signed the safe, and does so
// once.
func (m *member) handOver(ctx context.Context, rec kv.Record) (kv.Record, error) {
	whole, ok := m.store.(kv.HandOver)
	place := m.place()
	dice := m.random.IntN(6)
	if !ok || dice == 0 {
		return kv.Record{}, m.empty(ctx, fmt.Sprintf("%s:heir-%d", m.name, m.random.IntN(m.number+2)))
	}
	if m.heir == (kv.Record{}) {
		heir, err := m.store.Create(ctx, place, m.signed())
		if errors.Is(err, kv.ErrHeld) {
			err = m.empty(ctx, place)
		}
		if heir == (kv.Record{}) {
			return heir, err
		}
		m.heir = heir
	}
	if dice == 1 {
		_ = m.store.Delete(ctx, place, m.heir)
	}
	if now, err := m.store.Get(ctx, m.name); err == nil {
		rec = now
	}
	m.writes++
	got, err := whole.HandOver(ctx, m.name, rec, place, m.heir, fmt.Sprintf("n%d.%d", m.number, m.writes))
	if !errors.Is(err, kv.ErrStale) || m.random.IntN(3) == 0 {
		m.heir = kv.Record{}
	}
	return got, err
}

// refresh refreshes a record of this member. That of another it reads.
func (m *member) refresh(ctx context.Context, rec kv.Record) (kv.Record, error) {
	together, ok := m.store.(kv.Batch)
	dice := m.random.IntN(5)
	switch {
	case !m.signs(rec):
		return m.store.Get(ctx, m.name)
	case !ok, dice == 0:
		return m.store.Refresh(ctx, m.name, rec)
	}
	records := []kv.Held{{Name: m.name, Record: rec, Share: dice > 1}}
	if m.left != (kv.Held{}) {
		m.left.Share = m.random.IntN(2) == 0
		records = append(records, m.left)
	}
	got, errs := make([]kv.Record, len(records)), make([]error, len(records))
	together.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) { got[i], errs[i] = rec, err })
	if len(records) > 1 {
		m.left.Record = got[1]
		if errs[1] != nil {
			m.left = kv.Held{}
		}
	}
	return got[0], errs[0]
}

// signs reports whether a record has a signature of this member.
func (m *member) signs(rec kv.Record) bool {
	return strings.HasPrefix(rec.Signature, fmt.Sprintf("s%d.", m.number))
}

// empty deletes whatever a safe holds.
func (m *member) empty(ctx context.Context, name string) error {
	there, err := m.store.Get(ctx, name)
	if err == nil {
		err = m.store.Delete(ctx, name, there)
	}
	return err
}

// signed returns a record that no other client writes.
func (m *member) signed() kv.Record {
	m.writes++
	id := fmt.Sprintf("%d.%d", m.number, m.writes)
	return kv.Record{Signature: "s" + id, Value: "v" + id, Note: "n" + id, TTL: m.work.crowd.TTL}
}
