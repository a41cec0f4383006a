package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/backends/paxos/internal/wire"
)

// messages are some of each kind, with each field set.
func messages() []lease.Message {
	ballot := lease.Ballot{Counter: 7, Proposer: "a:1", Incarnation: 1 << 63}
	state := lease.State{
		Tenure: ballot, Signature: "me", Value: "\xff\x00", Note: "note", TTL: 15 * time.Second, Revision: 9, Rescues: 255,
		Receipts: []lease.Receipt{{Member: "a:1", Incarnation: 1, Operation: 2, Counter: 3}, {Member: "b:1", Incarnation: 4, Operation: 5, Counter: 6}},
	}
	report := lease.Report{Accepted: ballot, State: state, Expired: true, Life: time.Nanosecond}
	return []lease.Message{
		lease.Query{Safe: "s", Asker: ballot},
		lease.Answer{Safe: "s", Asker: ballot, Report: report, Promised: 8},
		lease.Prepare{Safe: "s/\xff", Ballot: ballot},
		lease.Promise{Safe: "s", Ballot: ballot, Acceptor: 8, Report: report},
		lease.Propose{Safe: "s", Ballot: ballot, Acceptor: 8, Replaces: lease.Lease{Tenure: ballot, Ballot: lease.Ballot{Counter: 1}}, State: state, Life: time.Hour},
		lease.Accept{Safe: "s", Ballot: ballot},
		lease.Refusal{Safe: "s", Ballot: ballot, Promised: lease.MaxCounter, Held: true, Life: time.Second, Void: true},
		lease.Retract{Safe: "s", Ballot: ballot},
		lease.Commit{Safe: "s", Ballot: ballot, State: state, Life: time.Minute},
		lease.Query{}, lease.Answer{}, lease.Prepare{}, lease.Promise{}, lease.Propose{}, lease.Accept{}, lease.Refusal{}, lease.Retract{}, lease.Commit{},
	}
}

// wild are messages that are well formed, and say more than there is.
func wild() map[string]lease.Message {
	all := map[string]lease.Message{}
	for _, n := range []uint64{lease.MaxCounter + 1, 1<<64 - 1} {
		high := lease.Ballot{Counter: n, Proposer: "a:1"}
		for name, m := range map[string]lease.Message{
			"a question":       lease.Query{Asker: high},
			"an answer":        lease.Answer{Promised: n},
			"a prepare":        lease.Prepare{Ballot: high},
			"a promise":        lease.Promise{Report: lease.Report{Accepted: high}},
			"a proposal":       lease.Propose{Replaces: lease.Lease{Tenure: high}},
			"what it replaces": lease.Propose{Replaces: lease.Lease{Ballot: high}},
			"an accept":        lease.Accept{Ballot: high},
			"a refusal":        lease.Refusal{Promised: n},
			"a retraction":     lease.Retract{Ballot: high},
			"a token":          lease.Commit{State: lease.State{Tenure: high}},
			"a revision":       lease.Commit{State: lease.State{Revision: n}},
			"a receipt":        lease.Commit{State: lease.State{Receipts: []lease.Receipt{{Counter: n}}}},
		} {
			all[fmt.Sprint(name, " of ", n)] = m
		}
	}
	for _, d := range []time.Duration{lease.MaxSpan + 1, math.MaxInt64} {
		all[fmt.Sprint("a TTL of ", d)] = lease.Commit{State: lease.State{TTL: d}}
		all[fmt.Sprint("a life of ", d)] = lease.Propose{Life: d}
		all[fmt.Sprint("a rest of life of ", d)] = lease.Answer{Report: lease.Report{Life: d}}
		all[fmt.Sprint("a wait of ", d)] = lease.Refusal{Life: d}
	}
	half := strings.Repeat("x", lease.MaxRecord/2+1)
	all["a long name"] = lease.Prepare{Safe: strings.Repeat("x", lease.MaxSafe+1)}
	all["a long id"] = lease.Prepare{Ballot: lease.Ballot{Proposer: lease.MemberID(strings.Repeat("x", lease.MaxID+1))}}
	all["a long value"] = lease.Commit{State: lease.State{Value: half + half}}
	all["a long record"] = lease.Commit{State: lease.State{Signature: half, Note: half}}
	all["many receipts"] = lease.Commit{State: lease.State{Receipts: make([]lease.Receipt, lease.MaxReceipts+1)}}
	return all
}

func TestAMessageThatSaysMoreThanThereIsIsNone(t *testing.T) {
	for name, m := range wild() {
		_, err := wire.Decode(wire.Encode(m))
		require.ErrorContains(t, err, "malformed", name)
	}
	most := lease.State{
		Tenure: lease.Ballot{Counter: lease.MaxCounter, Proposer: lease.MemberID(strings.Repeat("x", lease.MaxID))}, Revision: lease.MaxCounter,
		Value: strings.Repeat("x", lease.MaxRecord), TTL: lease.MaxSpan, Receipts: make([]lease.Receipt, lease.MaxReceipts),
	}
	m := lease.Commit{Safe: strings.Repeat("x", lease.MaxSafe), State: most, Life: lease.MaxSpan}
	got, err := wire.Decode(wire.Encode(m))
	require.NoError(t, err)
	require.Equal(t, m, got)
	require.Less(t, len(wire.Encode(m)), wire.MaxMessage)
}

func TestAMessageIsReadAsItWasWritten(t *testing.T) {
	for _, m := range messages() {
		got, err := wire.Decode(wire.Encode(m))
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
}

func TestAMessageThatIsCutShortIsNone(t *testing.T) {
	for _, m := range messages() {
		b := wire.Encode(m)
		for i := range b {
			_, err := wire.Decode(b[:i])
			require.Error(t, err, "%d bytes of %T", i, m)
		}
		_, err := wire.Decode(append(b, 0))
		require.Error(t, err, "%T with a byte more", m)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range messages() {
		f.Add(wire.Encode(m))
	}
	for _, m := range wild() {
		f.Add(wire.Encode(m))
	}
	f.Add([]byte("P\x80\x00\x00\x00\x00")) // a number in a form that is not its own
	f.Add([]byte("C\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wire.Decode(b)
		if err == nil && !bytes.Equal(wire.Encode(m), b) {
			t.Fatalf("%x is read as %#v, and written as %x", b, m, wire.Encode(m))
		}
		if err == nil && largest(reflect.ValueOf(m)) > lease.MaxCounter {
			t.Fatalf("%x is read as %#v", b, m)
		}
	})
}

// largest returns the largest number in a message, incarnations and numbers of operations
// apart, which are of any size.
func largest(v reflect.Value) uint64 {
	most := uint64(0)
	switch v.Kind() {
	case reflect.Interface:
		return largest(v.Elem())
	case reflect.Uint64:
		return v.Uint()
	case reflect.Int64:
		return uint64(v.Int())
	case reflect.Slice:
		for i := range v.Len() {
			most = max(most, largest(v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "Incarnation", "Acceptor", "Operation":
			default:
				most = max(most, largest(v.Field(i)))
			}
		}
	}
	return most
}

func FuzzHello(f *testing.F) {
	terms := lease.Terms{Cluster: "c", Members: []lease.MemberID{"a:1", "b:1"}, MaxTTL: time.Minute, Round: time.Second, Drift: 2}
	f.Add(wire.Hello(1, "a:1", 1<<63, terms))
	f.Add(wire.Hello(1, "", 0, lease.Terms{}))
	f.Add(wire.Hello(2, "a:1", 1, terms))
	f.Add([]byte("election/paxos\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		again, err := wire.HelloAgain(b)
		if err == nil && !bytes.Equal(again, b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add(wire.Frame(wire.KindMessage, []byte("body")))
	f.Add(wire.Frame(wire.KindAlive, nil))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 1, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, body, err := wire.ReadFrame(bytes.NewReader(b), 64)
		if err == nil && !bytes.HasPrefix(b, wire.Frame(k, body)) {
			t.Fatalf("%x is read as kind %d and %x", b, k, body)
		}
		if len(body) > 64 {
			t.Fatalf("%d bytes are read", len(body))
		}
	})
}

func TestAFrameThatIsAnnouncedAndDoesNotComeTakesNoMemory(t *testing.T) {
	head := []byte{0, 0x10, 0, 0}
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		_, _, err := wire.ReadFrame(bytes.NewReader(head), wire.MaxMessage)
		require.Error(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/times, uint64(64<<10))
}

func TestWhereThereIsNoRoomTheOldestGoes(t *testing.T) {
	q := wire.NewQueue(time.Hour)
	for i := range wire.MaxWaiting + 2 {
		dropped := q.Put([]byte{byte(i), byte(i >> 8)})
		require.Equal(t, i >= wire.MaxWaiting, dropped == 1)
	}
	k, body, err := wire.ReadFrame(bytes.NewReader(q.Take()), 64)
	require.NoError(t, err)
	require.Equal(t, wire.KindMessage, k)
	require.Equal(t, []byte{2, 0}, body)
	require.Empty(t, q.Take())

	large := make([]byte, wire.MaxMessage)
	require.Equal(t, []int{0, 0, 0, 0, 1}, []int{q.Put(large), q.Put(large), q.Put(large), q.Put(large), q.Put(large)})
	for range 4 {
		require.Len(t, q.Take(), 5+wire.MaxMessage)
	}
	require.Empty(t, q.Take())
}

func TestWhatIsTooOldIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := wire.NewQueue(time.Second)
		q.Put([]byte("a"))
		time.Sleep(600 * time.Millisecond)
		q.Put([]byte("b"))
		time.Sleep(600 * time.Millisecond)
		require.Equal(t, wire.Frame(wire.KindMessage, []byte("b")), q.Take())
		require.Empty(t, q.Take())
	})
}

func TestComplaintsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		complain := wire.Complaints(slog.New(slog.NewTextHandler(&log, nil)))
		lines := func() int { return strings.Count(log.String(), "\n") }
		for range 1000 {
			complain("a:1", "not connected", errors.New("refused"))
		}
		require.Equal(t, 1, lines())
		complain("b:1", "not connected", errors.New("refused"))
		require.Equal(t, 2, lines(), "each peer has its own")
		complain("a:1", "not connected", errors.New("another reason"))
		require.Equal(t, 2, lines())
		time.Sleep(time.Second)
		complain("a:1", "not connected", errors.New("refused"))
		require.Equal(t, 2, lines(), "it was said")
		complain("a:1", "not connected", errors.New("another reason"))
		require.Equal(t, 3, lines())
		require.Contains(t, log.String(), "unsaid=1001")
		for range 100 {
			time.Sleep(time.Minute)
			complain("a:1", "not connected", errors.New("another reason"))
		}
		require.Equal(t, 103, lines())
		for i := range 100 {
			complain(wire.ClientID(uint64(i)), "not connected", errors.New("refused"))
		}
		require.Equal(t, 104, lines(), "clients share one")
	})
}
