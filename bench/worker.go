package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A worker runs the candidates of one process as it is ordered to.
type worker struct {
	seat   seat
	family family

	notices chan notice

	mu         sync.Mutex
	candidates map[int]candidate
	holding    map[int]*holding
}

// A holding is what one candidate holds, until it is told to release.
type holding struct {
	held    *held
	release chan struct{}
	lost    atomic.Bool
}

// serve reads a seat and then orders, and carries them out, until in ends. What is
// under way then ends with the process.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	w := &worker{notices: make(chan notice, 64), candidates: make(map[int]candidate), holding: make(map[int]*holding)}
	go w.write(json.NewEncoder(out))
	if err := orders.Decode(&w.seat); err != nil {
		return err
	}
	c, err := contenderNamed(w.seat.Store, w.seat.Contender)
	if err != nil {
		return err
	}
	if w.family, err = c.open(w.seat); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	w.say(notice{Kind: opened})
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		w.carryOut(ctx, o)
	}
}

// say tells those who give the orders. It encodes nothing itself: the stack of the goroutine that it is
// called from is measured.
func (w *worker) say(n notice) {
	if n.At == 0 {
		n.At = now()
	}
	w.notices <- n
}

func (w *worker) write(out *json.Encoder) {
	for n := range w.notices {
		_ = out.Encode(n) // nobody listens any more
	}
}

func (w *worker) carryOut(ctx context.Context, o order) {
	switch o.Do {
	case enter:
		for i := o.From; i < o.To; i++ {
			go w.stand(ctx, i)
		}
	case release:
		w.mu.Lock()
		h := w.holding[o.Candidate]
		w.mu.Unlock()
		if h == nil {
			w.say(notice{Kind: failed, Candidate: o.Candidate, Error: "it holds nothing to release"})
			return
		}
		close(h.release)
	case cycle:
		go w.cycle(ctx, o)
	case measure:
		u := w.measure()
		w.say(notice{Kind: done, Usage: &u})
	case margins:
		go w.margins(ctx, o.For)
	}
}

// known returns candidate i, which is made when it is first asked for.
func (w *worker) known(i int) (candidate, error) {
	w.mu.Lock()
	c := w.candidates[i]
	w.mu.Unlock()
	if c != nil {
		return c, nil
	}
	p := place{Election: w.seat.Election, Index: i, Of: w.seat.Of}
	if w.seat.Apart {
		p.Election, p.Of = fmt.Sprintf("%s-%d", p.Election, i), 1
	}
	c, err := w.family.candidate(p)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.candidates[i] = c
	w.mu.Unlock()
	return c, nil
}

// insist acquires. A contender that returns an error, since the server has too much to
// do, say, is asked again a little later, as a user would.
func (w *worker) insist(ctx context.Context, i int) (h *held, err error) {
	for range 300 {
		var c candidate
		if c, err = w.known(i); err == nil {
			h, err = c.acquire(ctx)
		}
		if err == nil {
			return h, nil
		}
		w.mu.Lock()
		delete(w.candidates, i) // its session may have expired
		w.mu.Unlock()
		if ended := pause(ctx, 100*time.Millisecond); ended != nil {
			return nil, ended
		}
	}
	return nil, err
}

// stand campaigns once, and holds what it acquires until it is told to release.
func (w *worker) stand(ctx context.Context, i int) {
	h, err := w.insist(ctx, i)
	at := now()
	if err != nil {
		w.say(notice{Kind: failed, Candidate: i, Error: err.Error()})
		return
	}
	own := &holding{held: h, release: make(chan struct{})}
	w.mu.Lock()
	w.holding[i] = own
	w.mu.Unlock()
	w.say(notice{Kind: elected, Candidate: i, At: at})
	gone := h.lost
	for waiting := true; waiting; {
		select {
		case <-gone:
			own.lost.Store(true)
			w.say(notice{Kind: lost, Candidate: i})
			gone = nil
		case <-own.release:
			waiting = false
		case <-ctx.Done():
			return // the process ends
		}
	}
	w.mu.Lock()
	delete(w.holding, i)
	w.mu.Unlock()
	began := now()
	if err := h.release(ctx); err != nil {
		w.say(notice{Kind: failed, Candidate: i, Error: "release: " + err.Error()})
		return
	}
	w.say(notice{Kind: released, Candidate: i, At: began})
}

// cycle acquires and releases, and tells how long each took, in seconds.
func (w *worker) cycle(ctx context.Context, o order) {
	series := make(map[string][]float64)
	c, err := w.known(o.Candidate)
	for range o.N {
		if err != nil {
			break
		}
		var h *held
		began := now()
		if h, err = c.acquire(ctx); err != nil {
			break
		}
		acquired := now()
		err = h.release(ctx)
		ended := now()
		series["acquire"] = append(series["acquire"], (acquired - began).Seconds())
		series["both"] = append(series["both"], (ended - began).Seconds())
	}
	n := notice{Kind: done, Candidate: o.Candidate, Series: series}
	if err != nil {
		n.Kind, n.Error = failed, err.Error()
	}
	w.say(n)
}

func (w *worker) measure() usage {
	u := usage{CPU: ownCPU()}
	runtime.GC()
	runtime.GC() // what the first has left to finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	u.Heap, u.Goroutines = stats.HeapAlloc+stats.StackInuse, runtime.NumGoroutine()
	w.mu.Lock()
	for _, h := range w.holding {
		if !h.lost.Load() {
			u.Leading++
		}
	}
	w.mu.Unlock()
	u.CPUAfter = ownCPU()
	return u
}

func ownCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// margins looks ten times a second, for a while, at how long each term is trusted.
func (w *worker) margins(ctx context.Context, d time.Duration) {
	least, known := time.Duration(1<<62), false
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; <-tick.C {
		w.mu.Lock()
		for _, h := range w.holding {
			if h.held.until != nil {
				known = true
				least = min(least, time.Until(h.held.until()))
			}
		}
		w.mu.Unlock()
	}
	n := notice{Kind: done}
	if known {
		n.Series = map[string][]float64{"margin": {max(least, 0).Seconds()}}
	}
	w.say(n)
}
