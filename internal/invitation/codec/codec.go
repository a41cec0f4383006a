// Package codec has the messages of package invitation as bytes.
package codec

import (
	"fmt"

	"github.com/electkv/election/internal/invitation"
	"github.com/electkv/election/internal/wire"
)

// The first byte of a message says which it is. The fields follow in the order in
// which package invitation declares them.
const (
	tagProbe     = 'P'
	tagAnswer    = 'p'
	tagInvite    = 'I'
	tagAccept    = 'i'
	tagJoin      = 'J'
	tagReady     = 'j'
	tagHeartbeat = 'H'
	tagAlive     = 'h'
	tagGone      = 'G'
)

// Encode returns a message as bytes. The limits of its size are the caller's.
func Encode(m invitation.Message) []byte {
	w := writer{}
	switch m := m.(type) {
	case invitation.Probe:
		w.head(tagProbe, m.Number)
		w.Number(uint64(m.Size))
	case invitation.Answer:
		w.head(tagAnswer, m.Probe)
		w.number(m.Number)
		w.members(m.Members)
	case invitation.Invite:
		w.head(tagInvite, m.Number)
		w.number(m.Old)
		w.Number(uint64(m.Size))
	case invitation.Accept:
		w.head(tagAccept, m.Number)
		w.number(m.Old)
	case invitation.Join:
		w.head(tagJoin, m.Number)
		w.number(m.Old)
	case invitation.Ready:
		w.head(tagReady, m.Number)
	case invitation.Heartbeat:
		w.head(tagHeartbeat, m.Number)
		w.members(m.Members)
	case invitation.Alive:
		w.head(tagAlive, m.Number)
	case invitation.Gone:
		w.head(tagGone, m.Number)
	default:
		panic(fmt.Sprintf("group: no form for %T", m))
	}
	return w.Bytes
}

// Decode takes a message from bytes that anybody may have made. Lengths are within the
// bounds of package invitation. Whether the sender may say that, [invitation.Check] tells.
func Decode(b []byte) (invitation.Message, error) {
	if len(b) == 0 {
		return nil, wire.ErrMalformed
	}
	r := reader{wire.NewReader(b[1:])}
	number := r.number()
	var m invitation.Message
	switch b[0] {
	case tagProbe:
		m = invitation.Probe{Number: number, Size: r.Count(invitation.MaxMembers)}
	case tagAnswer:
		m = invitation.Answer{Probe: number, Number: r.number(), Members: r.members()}
	case tagInvite:
		m = invitation.Invite{Number: number, Old: r.number(), Size: r.Count(invitation.MaxMembers)}
	case tagAccept:
		m = invitation.Accept{Number: number, Old: r.number()}
	case tagJoin:
		m = invitation.Join{Number: number, Old: r.number()}
	case tagReady:
		m = invitation.Ready{Number: number}
	case tagHeartbeat:
		m = invitation.Heartbeat{Number: number, Members: r.members()}
	case tagAlive:
		m = invitation.Alive{Number: number}
	case tagGone:
		m = invitation.Gone{Number: number}
	default:
		return nil, fmt.Errorf("a message of unknown kind %q", b[0])
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("a message of kind %q is %w", b[0], err)
	}
	return m, nil
}

// A writer writes what messages are made of.
type writer struct{ wire.Writer }

// A reader reads it.
type reader struct{ *wire.Reader }

func (w *writer) head(tag byte, n invitation.Number) {
	w.Bytes = append(w.Bytes, tag)
	w.number(n)
}

func (w *writer) number(n invitation.Number) {
	w.Text(string(n.By))
	w.Number(n.Incarnation)
	w.Number(n.Counter)
}

func (r reader) number() invitation.Number {
	return invitation.Number{By: r.id(), Incarnation: r.Number(), Counter: r.Number()}
}

func (w *writer) members(ids []invitation.ID) {
	w.Number(uint64(len(ids)))
	for _, id := range ids {
		w.Text(string(id))
	}
}

func (r reader) members() []invitation.ID {
	var ids []invitation.ID
	for range r.Count(invitation.MaxMembers) {
		ids = append(ids, r.id())
	}
	return ids
}

func (r reader) id() invitation.ID { return invitation.ID(r.Text(invitation.MaxID)) }
