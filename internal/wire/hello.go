package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// magic begins a hello, so that a stranger is told from another protocol. The protocol's
// name and version follow.
const magic = "election/"

const (
	// maxID is the length of the longest id.
	maxID = 512
	// maxRefusal bounds the text of a refusal.
	maxRefusal = 2 << 10
)

// A Protocol is what is spoken on a connection. Both ends must have the same.
type Protocol struct {
	// Name is of lower-case letters only. No other protocol has it.
	Name string
	// Version is another one whenever the terms have another form, or messages have one
	// that the versions before cannot read.
	Version uint16
	// Terms are compared in their order, which is the same for all of a version.
	Terms []Term
}

func (p Protocol) check() error {
	if p.Name == "" || strings.TrimLeftFunc(p.Name, letter) != "" {
		return fmt.Errorf("a protocol with the name %q: use lower-case letters", p.Name)
	}
	if size := len(p.encode(hello{member: strings.Repeat("x", maxID)})); size > maxHello {
		return fmt.Errorf("what members must agree upon has %d bytes, where %d are the most", size, maxHello)
	}
	if _, err := p.decode(p.encode(hello{})); err != nil {
		return fmt.Errorf("what members must agree upon has a text that is too long, or not UTF-8, or a number below 0 or above %d", math.MaxInt32)
	}
	return nil
}

func letter(r rune) bool { return 'a' <= r && r <= 'z' }

// A hello says who is there.
type hello struct {
	member      string // empty: a client
	incarnation uint64
}

// encode returns a hello of somebody that speaks this protocol.
func (p Protocol) encode(h hello) []byte {
	w := Writer{binary.BigEndian.AppendUint16([]byte(magic+p.Name), p.Version)}
	w.Text(h.member)
	w.Number(h.incarnation)
	for _, t := range p.Terms {
		w.Bytes = append(w.Bytes, t.body...)
	}
	return w.Bytes
}

// decode returns who says hello. The error says why this protocol cannot be spoken with it.
func (p Protocol) decode(b []byte) (hello, error) {
	text, ok := bytes.CutPrefix(b, []byte(magic))
	rest := bytes.TrimLeftFunc(text, letter)
	if !ok || len(rest) < 2 {
		return hello{}, errors.New("it does not speak this protocol")
	}
	if name := text[:len(text)-len(rest)]; string(name) != p.Name {
		return hello{}, fmt.Errorf("it speaks the protocol %q, and the other %q: list the addresses of members that speak the same", name, p.Name)
	}
	if v := binary.BigEndian.Uint16(rest); v != p.Version {
		return hello{}, fmt.Errorf("it speaks version %d of the protocol, and this one version %d", v, p.Version)
	}
	r := NewReader(rest[2:])
	h := hello{member: r.Text(maxID), incarnation: r.Number()}
	var differs error
	for _, ours := range p.Terms {
		before := r.bytes
		theirs := ours.show(r)
		if !bytes.HasPrefix(before, ours.body) && differs == nil {
			differs = fmt.Errorf("its %s %s, and the other's %s: they must be the same", ours.is, theirs, ours)
		}
	}
	if r.End() != nil {
		return hello{}, errors.New("its hello is malformed")
	}
	return h, differs
}
