package paxoskv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/electkv/election"
	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
)

// memberVariable tells a copy of this test binary which member it is.
const memberVariable = "PAXOSKV_TEST_MEMBER"

// TestMain lets a copy of this test binary be a member on a host of its own.
func TestMain(m *testing.M) {
	text := os.Getenv(memberVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := play(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A part is what a member process is told.
type part struct {
	Who           string
	ID            string
	Peers         []string
	Dir           string
	Cert, Key, CA string
	TTL, MaxTTL   time.Duration
}

func (p part) options() (paxoskv.Options, error) {
	config, err := testenv.ReadConfig(p.Cert, p.Key, p.CA)
	if err != nil {
		return paxoskv.Options{}, err
	}
	return paxoskv.Options{
		ID: p.ID, Peers: p.Peers, Cluster: "hosts", Dir: p.Dir, Founding: true,
		MaxTTL: p.MaxTTL, Round: 500 * time.Millisecond,
		TLS:    config,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("member", p.Who),
	}, nil
}

// play is a member that campaigns and leads until its input ends.
func play(text string) error {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	opts, err := p.options()
	if err != nil {
		return err
	}
	store, err := paxoskv.New(&opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	w := &witness{who: p.Who, out: json.NewEncoder(os.Stdout)}
	candidate, err := election.New(store, "hosts", &election.Options{ID: p.Who, TTL: p.TTL})
	if err != nil {
		return err
	}
	w.note(history.Event{Kind: history.Ready})
	for err == nil {
		err = candidate.Run(ctx, w.lead)
	}
	if ctx.Err() == nil {
		return err
	}
	return store.Close()
}

// A witness writes down what its candidate believes, before it acts on it.
type witness struct {
	who string
	mu  sync.Mutex
	out *json.Encoder
}

func (w *witness) note(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Who = w.who
	if e.At == 0 {
		e.At = boottime.Now()
	}
	_ = w.out.Encode(e) // who does not hear it has ended
}

// lead works in small steps, and asks before each of them whether it may.
func (w *witness) lead(ctx context.Context, term *election.Term) error {
	asked := boottime.Now()
	if ctx.Err() != nil {
		return nil
	}
	clock, until := boottime.NewConverter(), term.Until()
	w.note(history.Event{Kind: history.Elected, At: asked, Token: term.Token(), Until: clock.Convert(until)})
	step := time.NewTicker(20 * time.Millisecond)
	defer step.Stop()
	for {
		if u := term.Until(); !u.Equal(until) {
			until = u
			w.note(history.Event{Kind: history.Extended, Token: term.Token(), Until: clock.Convert(until)})
		}
		asked := boottime.Now()
		if ctx.Err() != nil {
			w.note(history.Event{Kind: history.Ended, Token: term.Token(), Text: context.Cause(ctx).Error()})
			return nil
		}
		w.note(history.Event{Kind: history.Worked, At: asked, Token: term.Token()})
		select {
		case <-ctx.Done():
		case <-step.C:
		}
	}
}
