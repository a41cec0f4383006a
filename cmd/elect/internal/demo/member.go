//go:build unix

package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election/cmd/elect/internal/peers"
	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

// A MemberPart is what a process of a meeting is given.
type MemberPart struct {
	ID       string        `json:"id"`
	Names    []string      `json:"names"` // of all: each is the ID of one, and the host in its certificate
	Network  string        `json:"network"`
	Folder   string        `json:"folder"` // with its certificate
	Interval time.Duration `json:"interval"`
}

// A Member is one of the processes of a meeting.
type Member struct {
	Part MemberPart
	Out  io.Writer // gets one event per line

	note func(history.Event)
}

// port makes an address of a name. The network finds it by the name alone.
const port = ":7000"

// stopping is how long work takes to stop: a group that does not wait for it is seen.
const stopping = 50 * time.Millisecond

// addresses are those by which processes know each other.
func addresses(names []string) []string {
	all := []string{}
	for _, name := range names {
		all = append(all, name+port)
	}
	return all
}

// Run is in groups, and leads some, until ctx ends, or until an event cannot be written.
func (m *Member) Run(ctx context.Context) error {
	heard, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	m.note = witness.Tell(m.Out, gone)
	member, err := m.join(ctx)
	if err != nil {
		return err
	}
	shown := make(chan group.Number, 1) // the newest that Watch has shown
	var watching sync.WaitGroup
	watching.Go(func() {
		for g := range member.Watch(heard) {
			m.tell(history.Joined, g)
			select {
			case <-shown:
			default:
			}
			shown <- g.Number
		}
	})
	err = member.Run(heard, func(ctx context.Context, g group.Group) error {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err() // it was over before it was shown
			case number := <-shown:
				if number != g.Number {
					continue
				}
			}
			m.tell(history.Started, g) // after Joined, and so the last group's was
			<-ctx.Done()
			time.Sleep(stopping)
			m.tell(history.Finished, g)
			return ctx.Err()
		}
	})
	watching.Wait()
	err = errors.Join(err, member.Close())
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// join begins to listen, where there is room, and says where.
func (m *Member) join(ctx context.Context) (*group.Member, error) {
	files := &group.Files{
		Cert: filepath.Join(m.Part.Folder, peers.PairFile),
		CA:   filepath.Join(m.Part.Folder, peers.AuthorityFile),
	}
	for tries := 20; ; tries-- {
		addr, err := freeAddr(ctx)
		if err != nil {
			return nil, err
		}
		m.note(history.Event{Who: m.Part.ID, Kind: history.Ready, Value: addr})
		member, err := group.New(&group.Options{
			ID: m.Part.ID + port, Peers: addresses(m.Part.Names), Cluster: "demo", GetTLS: files.TLS,
			Listen: addr, Dial: m.dial, Interval: m.Part.Interval,
		})
		if !errors.Is(err, syscall.EADDRINUSE) || tries == 1 { // else another process was faster
			return member, err
		}
	}
}

// freeAddr returns an address of this host that nobody listens at.
func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// dial connects with a process over the demo's network.
func (m *Member) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	return callOver(ctx, m.Part.Network, slices.Index(m.Part.Names, m.Part.ID), slices.Index(m.Part.Names, nameOf(addr)))
}

func (m *Member) tell(what history.Kind, g group.Group) {
	e := history.Event{Who: m.Part.ID, Kind: what}
	e.Group = history.Group{Number: string(g.Number), Leader: nameOf(g.Leader)}
	for _, id := range g.Members {
		e.Group.Members = append(e.Group.Members, nameOf(id))
	}
	m.note(e)
}

func nameOf(addr string) string { return strings.TrimSuffix(addr, port) }
