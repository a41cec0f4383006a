package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A relay stands between clients and a server, and counts what passes.
type relay struct {
	upstream string
	listener net.Listener
	bytes    atomic.Int64 // both ways
	open     atomic.Int64 // connections
	serving  sync.WaitGroup

	mu     sync.Mutex
	links  map[net.Conn]struct{}
	closed bool
}

func newRelay(upstream string) (*relay, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // close ends it
	if err != nil {
		return nil, err
	}
	r := &relay{upstream: upstream, listener: listener, links: make(map[net.Conn]struct{})}
	r.serving.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.serving.Go(func() { r.serve(client) })
	}
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp4", r.upstream) //nolint:noctx // close ends it
	if err != nil {
		return
	}
	defer server.Close()
	if !r.add(client, server) {
		return
	}
	defer r.remove(client, server)
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(counter{to, &r.bytes}, struct{ io.Reader }{from}) // a connection that ends
		to.Close()
		from.Close()
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// counter counts what is written.
type counter struct {
	io.Writer
	n *atomic.Int64
}

func (c counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}

func (r *relay) add(ends ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for _, end := range ends {
		r.links[end] = struct{}{}
	}
	r.open.Add(1)
	return true
}

func (r *relay) remove(ends ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, end := range ends {
		delete(r.links, end)
	}
	r.open.Add(-1)
}

// close ends all connections and waits until they are gone.
func (r *relay) close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for end := range r.links {
		err = errors.Join(err, ignoreClosed(end.Close()))
	}
	r.mu.Unlock()
	r.serving.Wait()
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
