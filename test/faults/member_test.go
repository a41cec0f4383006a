//go:build linux

package faults

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/testenv"
)

// memberVariable is the environment variable that makes this program a member that
// keeps safes together with others, and no candidate: it holds what it is told.
const memberVariable = "ELECTION_FAULTS_MEMBER"

// Terms are what the members agree on, and what each needs to be let in.
type terms struct {
	Members       []string
	MaxTTL, Round time.Duration
	Drift         int
	Cert, Key, CA string // files
}

// A member is what a member's process is told.
type member struct {
	terms
	ID       string
	Listen   string // if that is another address
	Founding bool
	Fast     int    // by so many thousandths its clock runs fast
	Program  string // that is the member in this one's place, unless that is empty
}

// options are those of a client, or of what is to become a member.
func (t terms) options() (paxoskv.Options, error) {
	config, err := testenv.ReadConfig(t.Cert, t.Key, t.CA)
	if err != nil {
		return paxoskv.Options{}, err
	}
	return paxoskv.Options{
		Peers: t.Members, Cluster: "faults", MaxTTL: t.MaxTTL, Round: t.Round, Drift: t.Drift,
		TLS: config,
	}, nil
}

// serve is a member's main. It goes on until it is killed. The current folder is
// its own.
func serve(text string) int {
	var m member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		fmt.Fprintln(os.Stderr, "what the member is told cannot be read:", err)
		return 2
	}
	if m.Program != "" {
		return m.become()
	}
	opts, err := m.options()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	opts.ID, opts.Listen, opts.Dir, opts.Founding = m.ID, m.Listen, ".", m.Founding
	opts.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	opts.Clock = m.clock()
	store, err := paxoskv.New(&opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer store.Close()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
	return 0
}

// become puts another program in the place of this one, with the same to do.
func (m member) become() int {
	program := m.Program
	m.Program = ""
	text, err := json.Marshal(m)
	if err == nil {
		err = os.Setenv(memberVariable, string(text))
	}
	if err == nil {
		err = syscall.Exec(program, []string{program}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "the member's program cannot be run:", err)
	return 2
}

// clock returns how a member reads its clocks.
func (m member) clock() func() (mono, boot time.Duration) {
	begin, bootBegin := time.Now(), boottime.Now()
	fast := func(d time.Duration) time.Duration { return d + d*time.Duration(m.Fast)/1000 }
	return func() (mono, boot time.Duration) {
		return fast(time.Since(begin)), fast(boottime.Now() - bootBegin)
	}
}
