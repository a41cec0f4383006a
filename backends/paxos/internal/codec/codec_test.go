package codec_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/codec"
	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/internal/wire"
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
		_, err := codec.Decode(codec.Encode(m))
		require.ErrorContains(t, err, "malformed", name)
	}
	most := lease.State{
		Tenure: lease.Ballot{Counter: lease.MaxCounter, Proposer: lease.MemberID(strings.Repeat("x", lease.MaxID))}, Revision: lease.MaxCounter,
		Value: strings.Repeat("x", lease.MaxRecord), TTL: lease.MaxSpan, Receipts: make([]lease.Receipt, lease.MaxReceipts),
	}
	m := lease.Commit{Safe: strings.Repeat("x", lease.MaxSafe), State: most, Life: lease.MaxSpan}
	got, err := codec.Decode(codec.Encode(m))
	require.NoError(t, err)
	require.Equal(t, m, got)
	require.Less(t, len(codec.Encode(m)), wire.MaxMessage)
}

func TestAMessageIsReadAsItWasWritten(t *testing.T) {
	for _, m := range messages() {
		got, err := codec.Decode(codec.Encode(m))
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
}

func TestAMessageThatIsCutShortIsNone(t *testing.T) {
	for _, m := range messages() {
		b := codec.Encode(m)
		for i := range b {
			_, err := codec.Decode(b[:i])
			require.Error(t, err, "%d bytes of %T", i, m)
		}
		_, err := codec.Decode(append(b, 0))
		require.Error(t, err, "%T with a byte more", m)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range messages() {
		f.Add(codec.Encode(m))
	}
	for _, m := range wild() {
		f.Add(codec.Encode(m))
	}
	f.Add([]byte("P\x80\x00\x00\x00\x00")) // a number in a form that is not its own
	f.Add([]byte("C\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := codec.Decode(b)
		if err == nil && !bytes.Equal(codec.Encode(m), b) {
			t.Fatalf("%x is read as %#v, and written as %x", b, m, codec.Encode(m))
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
