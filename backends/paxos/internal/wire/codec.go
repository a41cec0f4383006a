package wire

import (
	"fmt"
	"math"

	"github.com/electkv/election/backends/paxos/internal/lease"
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

// Encode returns a message as bytes. Size limits are the caller's: see MaxMessage.
func Encode(m lease.Message) []byte {
	w := writer{}
	switch m := m.(type) {
	case lease.Query:
		w.head(tagQuery, m.Safe, m.Asker)
	case lease.Answer:
		w.head(tagAnswer, m.Safe, m.Asker)
		w.report(m.Report)
		w.number(m.Promised)
	case lease.Prepare:
		w.head(tagPrepare, m.Safe, m.Ballot)
	case lease.Promise:
		w.head(tagPromise, m.Safe, m.Ballot)
		w.number(m.Acceptor)
		w.report(m.Report)
	case lease.Propose:
		w.head(tagPropose, m.Safe, m.Ballot)
		w.number(m.Acceptor)
		w.ballot(m.Replaces.Tenure)
		w.ballot(m.Replaces.Ballot)
		w.state(m.State)
		w.span(m.Life)
	case lease.Accept:
		w.head(tagAccept, m.Safe, m.Ballot)
	case lease.Refusal:
		w.head(tagRefusal, m.Safe, m.Ballot)
		w.number(m.Promised)
		w.flag(m.Held)
		w.span(m.Life)
		w.flag(m.Void)
	case lease.Retract:
		w.head(tagRetract, m.Safe, m.Ballot)
	case lease.Commit:
		w.head(tagCommit, m.Safe, m.Ballot)
		w.state(m.State)
		w.span(m.Life)
	default:
		panic(fmt.Sprintf("paxoskv: no form for %T", m))
	}
	return w.bytes
}

// Decode takes a message from bytes that anybody may have made. Counters, spans and
// lengths are within the bounds of package lease.
func Decode(b []byte) (lease.Message, error) {
	if len(b) == 0 {
		return nil, errMalformed
	}
	r := reader{bytes: b[1:]}
	safe, ballot := r.charsUpTo(lease.MaxSafe), r.ballot()
	var m lease.Message
	switch b[0] {
	case tagQuery:
		m = lease.Query{Safe: safe, Asker: ballot}
	case tagAnswer:
		m = lease.Answer{Safe: safe, Asker: ballot, Report: r.report(), Promised: r.counter()}
	case tagPrepare:
		m = lease.Prepare{Safe: safe, Ballot: ballot}
	case tagPromise:
		m = lease.Promise{Safe: safe, Ballot: ballot, Acceptor: r.number(), Report: r.report()}
	case tagPropose:
		m = lease.Propose{
			Safe: safe, Ballot: ballot, Acceptor: r.number(),
			Replaces: lease.Lease{Tenure: r.ballot(), Ballot: r.ballot()},
			State:    r.state(), Life: r.span(),
		}
	case tagAccept:
		m = lease.Accept{Safe: safe, Ballot: ballot}
	case tagRefusal:
		m = lease.Refusal{Safe: safe, Ballot: ballot, Promised: r.counter(), Held: r.flag(), Life: r.span(), Void: r.flag()}
	case tagRetract:
		m = lease.Retract{Safe: safe, Ballot: ballot}
	case tagCommit:
		m = lease.Commit{Safe: safe, Ballot: ballot, State: r.state(), Life: r.span()}
	default:
		return nil, fmt.Errorf("a message of unknown kind %q", b[0])
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("a message of kind %q is %w", b[0], err)
	}
	return m, nil
}

func (w *writer) head(tag byte, safe string, b lease.Ballot) {
	w.bytes = append(w.bytes, tag)
	w.text(safe)
	w.ballot(b)
}

func (w *writer) ballot(b lease.Ballot) {
	w.number(b.Counter)
	w.text(string(b.Proposer))
	w.number(b.Incarnation)
}

func (r *reader) ballot() lease.Ballot {
	return lease.Ballot{Counter: r.counter(), Proposer: r.member(), Incarnation: r.number()}
}

func (w *writer) report(p lease.Report) {
	w.ballot(p.Accepted)
	w.state(p.State)
	w.flag(p.Expired)
	w.span(p.Life)
}

func (r *reader) report() lease.Report {
	return lease.Report{Accepted: r.ballot(), State: r.state(), Expired: r.flag(), Life: r.span()}
}

func (w *writer) state(s lease.State) {
	w.ballot(s.Tenure)
	w.text(s.Signature)
	w.text(s.Value)
	w.text(s.Note)
	w.span(s.TTL)
	w.number(s.Revision)
	w.number(uint64(s.Rescues))
	w.number(uint64(len(s.Receipts)))
	for _, receipt := range s.Receipts {
		w.text(string(receipt.Member))
		w.number(receipt.Incarnation)
		w.number(receipt.Operation)
		w.number(receipt.Counter)
	}
}

func (r *reader) state() lease.State {
	s := lease.State{
		Tenure: r.ballot(), Signature: r.text(), Value: r.charsUpTo(lease.MaxRecord), Note: r.text(),
		TTL: r.span(), Revision: r.counter(), Rescues: uint8(r.count(math.MaxUint8)),
	}
	if len(s.Signature)+len(s.Value)+len(s.Note) > lease.MaxRecord {
		r.fail()
	}
	for range r.count(lease.MaxReceipts) {
		s.Receipts = append(s.Receipts, lease.Receipt{
			Member: r.member(), Incarnation: r.number(), Operation: r.number(), Counter: r.counter(),
		})
	}
	return s
}
