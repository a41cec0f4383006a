package election

import (
	"sync"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A memory is what a candidate keeps between campaigns.
type memory struct {
	mu   sync.Mutex
	kept machine.Memory

	past machine.Past
	text string           // the same, as it is published
	led  machine.PastTerm // the present term, as far as is known; none if its token is zero
}

// recall returns what the candidate remembers of earlier campaigns.
func (c *Candidate) recall() machine.Memory {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	return c.memory.kept
}

func (m *memory) keep(now machine.Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = now
}

// history returns the terms that are over, as a leader publishes them.
func (m *memory) history() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text
}

// saw takes in what the leader's safe holds: another term means that the last one is over.
func (m *memory) saw(rec kv.Record) {
	if rec.Foreign {
		rec = kv.Record{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if rec.Token == m.led.Token || rec.Token != 0 && rec.Token < m.led.Token { // a slow watch shows what is over
		return
	}
	now := time.Now().UnixMilli()
	if m.led.Token != 0 {
		m.led.Ended, m.led.Why = now, machine.Gone
		m.past = m.past.Merge(machine.Past{m.led})
	}
	n := machine.NoteOf(rec)
	if m.led.Token != 0 || n.Past != m.text { // else it says what is known
		m.past = m.past.Merge(machine.PastOf(n.Past))
		if rec.Token != 0 {
			m.past = m.past.Before(rec.Token)
		}
		m.text = m.past.Text()
	}
	m.led = machine.PastTerm{ID: machine.IDOf(rec.Signature), Token: rec.Token, Began: n.Since}
	if n.Since == 0 {
		m.led.Began = now
	}
}

// ended notes why a term of this candidate has ended.
func (m *memory) ended(token uint64, reason Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.led.Token == token {
		m.led.Ended, m.led.Why = time.Now().UnixMilli(), machine.LetterOf(string(reason))
		m.past, m.led = m.past.Merge(machine.Past{m.led}), machine.PastTerm{}
	}
	for i := range m.past {
		if m.past[i].Token == token { // a watch may have shown it before
			m.past[i].Why = machine.LetterOf(string(reason))
		}
	}
	m.text = m.past.Text()
}
