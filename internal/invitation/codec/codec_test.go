package codec_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/invitation"
	"github.com/electkv/election/internal/invitation/codec"
	"github.com/electkv/election/internal/wire"
)

// messages are some of each kind, with each field set and with none.
func messages() []invitation.Message {
	a := invitation.Number{By: "a:1", Incarnation: math.MaxUint64, Counter: 7}
	b := invitation.Number{By: "b:1", Incarnation: 1, Counter: math.MaxUint64}
	return []invitation.Message{
		invitation.Probe{Number: a, Size: 3},
		invitation.Answer{Probe: a, Number: b, Members: []invitation.ID{"a:1", "b:1"}},
		invitation.Invite{Number: a, Old: b, Size: invitation.MaxMembers},
		invitation.Accept{Number: a, Old: b},
		invitation.Join{Number: a, Old: b},
		invitation.Ready{Number: a},
		invitation.Heartbeat{Number: a, Members: []invitation.ID{"a:1", "b:1", "c:1"}},
		invitation.Alive{Number: a},
		invitation.Gone{Number: a},
		invitation.Probe{}, invitation.Answer{}, invitation.Invite{}, invitation.Accept{}, invitation.Join{},
		invitation.Ready{}, invitation.Heartbeat{}, invitation.Alive{}, invitation.Gone{},
	}
}

// wild are messages that are well formed, and say more than there is.
func wild() map[string]invitation.Message {
	all := map[string]invitation.Message{}
	long := invitation.Number{By: invitation.ID(strings.Repeat("x", invitation.MaxID+1))}
	broken := invitation.Number{By: "\xff"}
	for name, n := range map[string]invitation.Number{"a long ID": long, "an ID that is no text": broken} {
		for i, m := range []invitation.Message{
			invitation.Probe{Number: n}, invitation.Answer{Probe: n}, invitation.Answer{Number: n}, invitation.Invite{Number: n}, invitation.Invite{Old: n},
			invitation.Accept{Number: n}, invitation.Accept{Old: n}, invitation.Join{Number: n}, invitation.Join{Old: n}, invitation.Ready{Number: n},
			invitation.Heartbeat{Number: n}, invitation.Alive{Number: n}, invitation.Gone{Number: n},
			invitation.Heartbeat{Members: []invitation.ID{n.By}}, invitation.Answer{Members: []invitation.ID{n.By}},
		} {
			all[fmt.Sprint(name, " ", i)] = m
		}
	}
	many := make([]invitation.ID, invitation.MaxMembers+1)
	all["a large group that probes"] = invitation.Probe{Size: len(many)}
	all["a large group that invites"] = invitation.Invite{Size: len(many)}
	all["a size below 0"] = invitation.Probe{Size: -1}
	all["many members"] = invitation.Heartbeat{Members: many}
	all["many members of an answer"] = invitation.Answer{Members: many}
	return all
}

func TestAMessageThatSaysMoreThanThereIsIsNone(t *testing.T) {
	for name, m := range wild() {
		_, err := codec.Decode(codec.Encode(m))
		require.ErrorContains(t, err, "malformed", name)
	}
	longest := invitation.ID(strings.Repeat("x", invitation.MaxID))
	n := invitation.Number{By: longest, Incarnation: math.MaxUint64, Counter: math.MaxUint64}
	most := invitation.Answer{Probe: n, Number: n}
	for range invitation.MaxMembers {
		most.Members = append(most.Members, longest)
	}
	got, err := codec.Decode(codec.Encode(most))
	require.NoError(t, err)
	require.Equal(t, most, got)
	require.Less(t, len(codec.Encode(most)), wire.MaxMessage)
}

func TestAMessageIsReadAsItWasWritten(t *testing.T) {
	seen := map[byte]string{}
	for _, m := range messages() {
		b := codec.Encode(m)
		got, err := codec.Decode(b)
		require.NoError(t, err)
		require.Equal(t, m, got)
		seen[b[0]] = fmt.Sprintf("%T", m)
	}
	require.Len(t, seen, 9, "each kind has a byte of its own")
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
	_, err := codec.Decode([]byte("X\x00\x00\x00"))
	require.ErrorContains(t, err, `unknown kind 'X'`)
}

func FuzzDecode(f *testing.F) {
	for _, m := range messages() {
		f.Add(codec.Encode(m))
	}
	for _, m := range wild() {
		f.Add(codec.Encode(m))
	}
	f.Add([]byte("R\x00\x80\x00\x00")) // a number in a form that is not its own
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := codec.Decode(b)
		if err != nil {
			return
		}
		if !bytes.Equal(codec.Encode(m), b) {
			t.Fatalf("%x is read as %#v, and written as %x", b, m, codec.Encode(m))
		}
		// A process that receives it goes on, whichever process has sent it.
		const self = "a:1"
		node, _ := invitation.Step(invitation.New(invitation.Config{Self: self, Timing: invitation.DefaultTiming()}), 0,
			invitation.Event{Kind: invitation.Start, Incarnation: 1, Peers: []invitation.ID{"b:1"}})
		for _, from := range []invitation.ID{self, "b:1", m.About().By} {
			invitation.Step(node, 0, invitation.Event{Kind: invitation.Arrived, From: from, Message: m})
		}
	})
}
