//go:build linux

package interop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

func parseLease(text string) (clientv3.LeaseID, error) {
	id, err := strconv.ParseInt(text, 16, 64)
	return clientv3.LeaseID(id), err
}

func formatLease(id clientv3.LeaseID) string { return strconv.FormatInt(int64(id), 16) }

// concurrent is a lock of package concurrency. Each time it is taken it has a
// session of its own, as in its examples.
type concurrent struct {
	p      *process
	client *clientv3.Client
	take1  func(ctx context.Context, session *concurrency.Session) (*grip, error)
}

func (l concurrent) close() { l.client.Close() }

func (l concurrent) take(ctx context.Context) (*grip, error) {
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(l.p.TTL/time.Second)), concurrency.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	g, err := l.take1(ctx, session)
	if err != nil {
		session.Close()
		return nil, err
	}
	g.lost = session.Done()
	release := g.release
	g.release = func(ctx context.Context) {
		release(ctx)
		session.Close()
	}
	return g, nil
}

func newMutex(p *process) (oldLock, error) {
	client, err := p.etcd()
	if err != nil {
		return nil, err
	}
	return concurrent{p, client, func(ctx context.Context, session *concurrency.Session) (*grip, error) {
		mutex := concurrency.NewMutex(session, p.line())
		if err := mutex.Lock(ctx); err != nil {
			return nil, err
		}
		return &grip{owner: mutex.Key(), release: func(ctx context.Context) { _ = mutex.Unlock(ctx) }}, nil
	}}, nil
}

func newElection(p *process) (oldLock, error) {
	client, err := p.etcd()
	if err != nil {
		return nil, err
	}
	return concurrent{p, client, func(ctx context.Context, session *concurrency.Session) (*grip, error) {
		election, value := concurrency.NewElection(session, p.line()), p.sign()
		if err := election.Campaign(ctx, value); err != nil {
			return nil, err
		}
		return &grip{
			owner: election.Key(), value: value, token: uint64(election.Rev()),
			release: func(ctx context.Context) { _ = election.Resign(ctx) },
		}, nil
	}}, nil
}

// newEtcdctlLock is the command "etcdctl lock".
func newEtcdctlLock(p *process) (oldLock, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return command{p, func(string) []string {
		return []string{"--endpoints=" + p.Addr, "lock", "--ttl=" + strconv.Itoa(int(p.TTL/time.Second)), p.line(), self, childArgument}
	}}, nil
}

// newEtcdctlElect is the command "etcdctl elect", which writes its key and its
// value when it leads, and leads until it is told to end.
func newEtcdctlElect(p *process) (oldLock, error) { return etcdctlElect{p}, nil }

type etcdctlElect struct{ p *process }

func (l etcdctlElect) close() {}

func (l etcdctlElect) take(ctx context.Context) (*grip, error) {
	value := l.p.sign()
	cmd := exec.Command(l.p.Command, "--endpoints="+l.p.Addr, "elect", l.p.line(), value)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	closed := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	led := lines.Scan() && closed() // a line says that it leads
	if !led {
		_, _ = io.Copy(io.Discard, out)
		return nil, fmt.Errorf("etcdctl elect: %w", cmd.Wait())
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	return &grip{
		owner: lines.Text(), value: value, lost: gone,
		release: func(context.Context) {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-gone
		},
	}, nil
}

// observe is a program that observes an election with package
// concurrency.
func (f *fleet) observe(ctx context.Context, client *clientv3.Client) error {
	session, err := concurrency.NewSession(client)
	if err != nil {
		return err
	}
	defer session.Close()
	for resp := range concurrency.NewElection(session, f.at).Observe(ctx) {
		for _, pair := range resp.Kvs {
			f.heard("concurrency.Observe", string(pair.Value))
		}
	}
	return nil
}

// listen runs "etcdctl elect --listen", which writes key and value of each leader.
func (f *fleet) listen(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, f.command, "--endpoints="+f.addr, "elect", "--listen", f.at)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); { // the key
		if lines.Scan() {
			f.heard("etcdctl elect --listen", lines.Text())
		}
	}
	_ = cmd.Wait()
	return nil
}

// revoke is an operator who ends the lease of an election that etcdctl has left
// behind: it lasts for a minute.
func (f *fleet) revoke(who string) error {
	client, err := part{Addr: f.addr}.etcd()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := client.Get(ctx, f.at+"/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, pair := range resp.Kvs {
		if owner, old := whose(string(pair.Value)); old && len(owner) > len(who) && owner[:len(who)+1] == who+"." {
			f.note(history.Event{At: boottime.Now(), Kind: history.Interfered, Text: "the lease of " + owner + ", which is dead, is revoked"})
			if _, err := client.Revoke(ctx, clientv3.LeaseID(pair.Lease)); err != nil {
				return err
			}
		}
	}
	return nil
}
