// Package codec has the messages of package lease as bytes.
package codec

import (
	"fmt"
	"math"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/internal/wire"
)

// The first byte of a message says which it is. The fields follow in the order in
// which package lease declares them.
const (
	tagQuery   = 'Q'
	tagAnswer  = 'q'
	tagPrepare = 'P'
	tagPromise = 'p'
	tagPropose = 'A'
	tagAccept  = 'a'
	tagRefusal = 'r'
	tagRetract = 'R'
	tagCommit  = 'C'
)

// Encode returns a message as bytes. The limits of its size are the caller's.
func Encode(m lease.Message) []byte {
	w := writer{}
	switch m := m.(type) {
	case lease.Query:
		w.head(tagQuery, m.Safe, m.Asker)
	case lease.Answer:
		w.head(tagAnswer, m.Safe, m.Asker)
		w.report(m.Report)
		w.Number(m.Promised)
	case lease.Prepare:
		w.head(tagPrepare, m.Safe, m.Ballot)
	case lease.Promise:
		w.head(tagPromise, m.Safe, m.Ballot)
		w.Number(m.Acceptor)
		w.report(m.Report)
	case lease.Propose:
		w.head(tagPropose, m.Safe, m.Ballot)
		w.Number(m.Acceptor)
		w.ballot(m.Replaces.Tenure)
		w.ballot(m.Replaces.Ballot)
		w.state(m.State)
		w.Span(m.Life)
	case lease.Accept:
		w.head(tagAccept, m.Safe, m.Ballot)
	case lease.Refusal:
		w.head(tagRefusal, m.Safe, m.Ballot)
		w.Number(m.Promised)
		w.Flag(m.Held)
		w.Span(m.Life)
		w.Flag(m.Void)
	case lease.Retract:
		w.head(tagRetract, m.Safe, m.Ballot)
	case lease.Commit:
		w.head(tagCommit, m.Safe, m.Ballot)
		w.state(m.State)
		w.Span(m.Life)
	default:
		panic(fmt.Sprintf("paxoskv: no form for %T", m))
	}
	return w.Bytes
}

// Decode takes a message from bytes that anybody may have made. Counters, spans and
// lengths are within the bounds of package lease.
func Decode(b []byte) (lease.Message, error) {
	if len(b) == 0 {
		return nil, wire.ErrMalformed
	}
	r := reader{wire.NewReader(b[1:])}
	safe, ballot := r.Chars(lease.MaxSafe), r.ballot()
	var m lease.Message
	switch b[0] {
	case tagQuery:
		m = lease.Query{Safe: safe, Asker: ballot}
	case tagAnswer:
		m = lease.Answer{Safe: safe, Asker: ballot, Report: r.report(), Promised: r.NumberUpTo(lease.MaxCounter)}
	case tagPrepare:
		m = lease.Prepare{Safe: safe, Ballot: ballot}
	case tagPromise:
		m = lease.Promise{Safe: safe, Ballot: ballot, Acceptor: r.Number(), Report: r.report()}
	case tagPropose:
		m = lease.Propose{
			Safe: safe, Ballot: ballot, Acceptor: r.Number(),
			Replaces: lease.Lease{Tenure: r.ballot(), Ballot: r.ballot()},
			State:    r.state(), Life: r.Span(lease.MaxSpan),
		}
	case tagAccept:
		m = lease.Accept{Safe: safe, Ballot: ballot}
	case tagRefusal:
		m = lease.Refusal{Safe: safe, Ballot: ballot, Promised: r.NumberUpTo(lease.MaxCounter), Held: r.Flag(), Life: r.Span(lease.MaxSpan), Void: r.Flag()}
	case tagRetract:
		m = lease.Retract{Safe: safe, Ballot: ballot}
	case tagCommit:
		m = lease.Commit{Safe: safe, Ballot: ballot, State: r.state(), Life: r.Span(lease.MaxSpan)}
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

func (r reader) member() lease.MemberID { return lease.MemberID(r.Text(lease.MaxID)) }

func (w *writer) head(tag byte, safe string, b lease.Ballot) {
	w.Bytes = append(w.Bytes, tag)
	w.Text(safe)
	w.ballot(b)
}

func (w *writer) ballot(b lease.Ballot) {
	w.Number(b.Counter)
	w.Text(string(b.Proposer))
	w.Number(b.Incarnation)
}

func (r reader) ballot() lease.Ballot {
	return lease.Ballot{Counter: r.NumberUpTo(lease.MaxCounter), Proposer: r.member(), Incarnation: r.Number()}
}

func (w *writer) report(p lease.Report) {
	w.ballot(p.Accepted)
	w.state(p.State)
	w.Flag(p.Expired)
	w.Span(p.Life)
}

func (r reader) report() lease.Report {
	return lease.Report{Accepted: r.ballot(), State: r.state(), Expired: r.Flag(), Life: r.Span(lease.MaxSpan)}
}

func (w *writer) state(s lease.State) {
	w.ballot(s.Tenure)
	w.Text(s.Signature)
	w.Text(s.Value)
	w.Text(s.Note)
	w.Span(s.TTL)
	w.Number(s.Revision)
	w.Number(uint64(s.Rescues))
	w.Number(uint64(len(s.Receipts)))
	for _, receipt := range s.Receipts {
		w.Text(string(receipt.Member))
		w.Number(receipt.Incarnation)
		w.Number(receipt.Operation)
		w.Number(receipt.Counter)
	}
}

func (r reader) state() lease.State {
	s := lease.State{
		Tenure: r.ballot(), Signature: r.Text(lease.MaxRecord), Value: r.Chars(lease.MaxRecord), Note: r.Text(lease.MaxRecord),
		TTL: r.Span(lease.MaxSpan), Revision: r.NumberUpTo(lease.MaxCounter), Rescues: uint8(r.Count(math.MaxUint8)),
	}
	if len(s.Signature)+len(s.Value)+len(s.Note) > lease.MaxRecord {
		r.Fail()
	}
	for range r.Count(lease.MaxReceipts) {
		s.Receipts = append(s.Receipts, lease.Receipt{
			Member: r.member(), Incarnation: r.Number(), Operation: r.Number(), Counter: r.NumberUpTo(lease.MaxCounter),
		})
	}
	return s
}
