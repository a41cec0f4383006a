//go:build linux

package interop

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/consul/api"
)

func (p part) consul() (*api.Client, error) {
	config := api.DefaultConfig()
	config.Address = p.Addr
	return api.NewClient(config)
}

// lockDelay is that of the old locks in Consul: the default of 15 s would be all
// of a short test.
const lockDelay = time.Second

type apiLock struct {
	p      *process
	client *api.Client
}

func newAPILock(p *process) (oldLock, error) {
	client, err := p.consul()
	if err != nil {
		return nil, err
	}
	return apiLock{p, client}, nil
}

func (l apiLock) close() {}

func (l apiLock) take(ctx context.Context) (*grip, error) {
	value := l.p.sign()
	lock, err := l.client.LockOpts(&api.LockOptions{
		Key: l.p.Key, Value: []byte(value), SessionName: value, SessionTTL: l.p.TTL.String(), LockDelay: lockDelay,
	})
	if err != nil {
		return nil, err
	}
	lost, err := lock.Lock(ctx.Done())
	if err != nil || lost == nil {
		return nil, fmt.Errorf("api.Lock: %w", err)
	}
	return &grip{owner: value, value: value, lost: lost, release: func(context.Context) { _ = lock.Unlock() }}, nil
}

// ownerVariable is how a command tells its child who it is.
const ownerVariable = "ELECTION_INTEROP_OWNER"

func childGrip() *grip {
	if key := os.Getenv("ETCD_LOCK_KEY"); key != "" { // etcdctl's own way
		return &grip{owner: key}
	}
	return &grip{owner: os.Getenv(ownerVariable)}
}

func notifyTerm(c chan<- os.Signal) { signal.Notify(c, syscall.SIGTERM, syscall.SIGINT) }

// A command is a lock that is one: it runs a child while it holds. It is run
// again and again, as a script would.
type command struct {
	p    *process
	args func(owner string) []string
}

func (l command) close() {}

// take runs the command once. Its child tells of what is held, so there is never
// a grip here.
func (l command) take(ctx context.Context) (*grip, error) {
	owner := l.p.sign()
	cmd := exec.Command(l.p.Command, l.args(owner)...)
	cmd.Env = append(os.Environ(), ownerVariable+"="+owner)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	// It stays in the group of this process, which is killed as one.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stopped := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stopped()
	err := cmd.Wait()
	pass(ctx, between(l.p.Rest))
	return nil, fmt.Errorf("it has run: %w", err)
}

func newConsulLock(p *process) (oldLock, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return command{p, func(owner string) []string {
		return []string{"lock", "-http-addr=" + p.Addr, "-name=" + owner, "-shell=false", p.Key, self, childArgument}
	}}, nil
}
