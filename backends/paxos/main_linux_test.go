package paxoskv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/electkv/election"
	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/witness"
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
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel(nil)
	}()
	w := witness.New(p.Who, witness.Tell(os.Stdout, cancel))
	candidate, err := election.New(store, "hosts", &election.Options{ID: p.Who, TTL: p.TTL})
	if err != nil {
		return err
	}
	w.Note(history.Event{Kind: history.Ready})
	for err == nil {
		err = candidate.Run(ctx, w.Lead)
	}
	if ctx.Err() == nil {
		return err
	}
	return store.Close()
}
