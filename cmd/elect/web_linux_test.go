package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// An answer is one to GET /leader, with the asker's own times of it.
type answer struct {
	sent, came time.Time
	code       int // zero if there was none in time
	token      uint64
	remaining  time.Duration
}

// yes reports whether the answer is a yes to a client that keeps to what is documented: one that
// took longer than trust lasts is none.
func (a answer) yes() bool {
	return a.code == http.StatusOK && a.came.Sub(a.sent) <= a.remaining
}

// A crowd asks one elect whether it leads, all the time.
type crowd struct {
	url    string
	ctx    context.Context
	asking sync.WaitGroup

	mu      sync.Mutex
	answers []answer
}

// crowdOf starts one: some are patient, and some give up soon. It ends before the test does.
func crowdOf(t *testing.T, e *proc) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &crowd{url: "http://" + e.answering(t) + "/leader", ctx: ctx}
	for _, patience := range []time.Duration{time.Minute, time.Minute, 200 * time.Millisecond, 200 * time.Millisecond} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: patience == time.Minute}, Timeout: patience}
		c.asking.Go(func() {
			for ctx.Err() == nil {
				c.ask(client)
				time.Sleep(time.Millisecond)
			}
			client.CloseIdleConnections()
		})
	}
	t.Cleanup(func() {
		cancel()
		c.asking.Wait()
	})
	return c
}

// grow has another one ask once, with all the patience it takes.
func (c *crowd) grow() {
	c.asking.Go(func() { c.ask(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}) })
}

func (c *crowd) ask(client *http.Client) {
	r, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.url, nil)
	if err != nil {
		panic(err)
	}
	a := answer{sent: time.Now()}
	if resp, err := client.Do(r); err == nil {
		var body struct {
			Token     uint64
			Remaining float64
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && json.Unmarshal(text, &body) == nil {
			a.code, a.token, a.remaining = resp.StatusCode, body.Token, time.Duration(body.Remaining*float64(time.Second))
		}
	}
	a.came = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, a)
}

// soFar returns the answers until now.
func (c *crowd) soFar() []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]answer{}, c.answers...)
}

// since returns those to what was asked since then.
func (c *crowd) since(then time.Time) (answers []answer) {
	for _, a := range c.soFar() {
		if a.sent.After(then) {
			answers = append(answers, a)
		}
	}
	return answers
}

// leads reports whether the elect has said so since then.
func (c *crowd) leads(then time.Time) bool {
	for _, a := range c.since(then) {
		if a.yes() {
			return true
		}
	}
	return false
}

// requireSequence wants no two to have led at once: nobody was told that a term goes on who asked
// after somebody had been told of a later one.
func requireSequence(t *testing.T, crowds ...*crowd) {
	t.Helper()
	first := map[uint64]time.Time{} // when the first yes of a term came
	all := []answer{}
	for _, c := range crowds {
		for _, a := range c.soFar() {
			if !a.yes() {
				continue
			}
			all = append(all, a)
			if came, ok := first[a.token]; !ok || a.came.Before(came) {
				first[a.token] = a.came
			}
		}
	}
	require.Greater(t, len(first), 1, "else this shows nothing")
	for _, a := range all {
		for token, came := range first {
			require.False(t, token > a.token && came.Before(a.sent), "term %d went on after term %d had begun", a.token, token)
		}
	}
}

// pairOf starts two elects, of which the first leads, and those who ask them.
func pairOf(t *testing.T, p *place, store string, flags ...string) (first *proc, of, ofNext *crowd) {
	t.Helper()
	args := func(store, id string) []string {
		return append([]string{"run", "--store", store, local, "--id", id, "job"}, flags...)
	}
	first = start(t, args(store, "one")...)
	of = crowdOf(t, first)
	eventually(t, "the first leads", func() bool { return of.leads(time.Time{}) })
	next := start(t, args(p.store, "two")...)
	ofNext = crowdOf(t, next)
	next.says(t, isHeir)
	return first, of, ofNext
}

const (
	shapesTTL     = 20 * time.Second
	shapesGrace   = 500 * time.Millisecond
	shapesAttempt = shapesTTL * 3 / 10 // a request takes no longer
)

// shapes are an elect with and without a COMMAND.
func shapes() map[string][]string {
	flags := []string{"--ttl", shapesTTL.String(), "--grace", shapesGrace.String()}
	return map[string][]string{
		"COMMAND":    append(slices.Clone(flags), "--", "sleep", "1000"),
		"no COMMAND": flags,
	}
}

func TestLeaderIsNeverAnsweredByAnElectThatWasFrozenBeyondItsTerm(t *testing.T) {
	for name, flags := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly it waits
			p := newPlace(t)
			first, of, ofNext := pairOf(t, p, p.store, flags...)
			rounds := 3
			if testing.Short() {
				rounds = 1
			}
			for range rounds {
				first.send(t, syscall.SIGSTOP)
				eventually(t, "it has stopped", func() bool { return processState(first.Process.Pid) == "T" })
				stopped := time.Now()
				for range 10 {
					of.grow()
				}
				eventually(t, "the other leads", func() bool { return ofNext.leads(stopped) })
				time.Sleep(time.Second)
				first.send(t, syscall.SIGCONT)
				eventually(t, "it answers again", func() bool { return hasCode(of.since(stopped), http.StatusServiceUnavailable) })
				time.Sleep(time.Second)
				eventually(t, "those who asked while it was frozen are answered", func() bool {
					frozen := 0
					for _, a := range of.since(stopped) {
						if a.code != 0 && a.came.Sub(a.sent) > time.Second {
							frozen++
						}
					}
					return frozen >= 10
				})
				for _, a := range of.since(stopped) {
					require.NotEqual(t, http.StatusOK, a.code, "asked %v after it was stopped", a.sent.Sub(stopped))
				}
				transfer(t, p, "one")
				eventually(t, "it leads again", func() bool { return of.leads(stopped) })
				requireSequence(t, of, ofNext)
			}
		})
	}
}

func hasCode(answers []answer, code int) bool {
	for _, a := range answers {
		if a.code == code {
			return true
		}
	}
	return false
}

// transfer has a candidate lead.
func transfer(t *testing.T, p *place, id string) {
	t.Helper()
	eventually(t, id+" is there", func() bool {
		status, _, _ := finish(t, "transfer", "--store", p.store, "job", "--to", id)
		return status == 0
	})
}

func TestLeaderIsNotAnsweredPastTrustByAnElectThatIsCutOff(t *testing.T) {
	server := testenv.StartRedis(t).Addr()
	for name, flags := range shapes() {
		for how, fault := range map[string]func(*testenv.Proxy){
			"refused": (*testenv.Proxy).Cut, "silence": (*testenv.Proxy).BlackHole, "no replies": (*testenv.Proxy).DropReplies,
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel() // mostly it waits
				p, proxy := newPlace(t), testenv.NewProxy(t, server)
				where := "/0?prefix=" + strings.ReplaceAll(name+how, " ", "-") + ":"
				p.store = "redis://" + server + where
				_, of, ofNext := pairOf(t, p, "redis://"+proxy.Addr()+where, flags...)
				fault(proxy)
				time.Sleep(shapesAttempt) // what was answered before may be heard of late
				cut := time.Now()
				eventually(t, "the other leads", func() bool { return ofNext.leads(cut) })
				time.Sleep(500 * time.Millisecond)
				requireTrust(t, of, cut)
				requireSequence(t, of, ofNext)
				proxy.Heal()
			})
		}
	}
}

// requireTrust wants no yes to a question that came after trust was over, of an elect that has
// refreshed nothing since then. The answers tell when that was: each, that it is no later than
// what it says remains, counted from when it came.
func requireTrust(t *testing.T, of *crowd, then time.Time) {
	t.Helper()
	answers := of.since(then)
	over := then.Add(shapesTTL)
	for _, a := range answers {
		if end := a.came.Add(a.remaining + time.Millisecond); a.code == http.StatusOK && end.Before(over) {
			over = end
		}
	}
	require.Less(t, over.Sub(then), shapesTTL-shapesGrace, "nobody was told that it leads")
	no := 0
	for _, a := range answers {
		switch a.code {
		case http.StatusOK:
			require.False(t, a.sent.After(over), "a yes to what was asked %v after trust was over", a.sent.Sub(over))
		case http.StatusServiceUnavailable:
			no++
		}
	}
	require.Positive(t, no, "it answers all the time")
}

func TestAnElectThatIsCutOffIsReadyForATTLAndAliveForEver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	server := testenv.StartRedis(t).Addr()
	p.store = "redis://" + server
	proxy := testenv.NewProxy(t, server)
	leader := p.run(stay, "--ttl", "5m", "--grace", "500ms")
	p.pid("child")
	e := start(t, "run", "--store", "redis://"+proxy.Addr(), local, "--ttl", "5s", "--grace", "500ms", "--succession", "none", "job", "--", "true")
	c := callerOf(t, e)
	eventually(t, "it is ready", func() bool { return c.code("/readyz") == 200 })
	var last atomic.Int64
	for range 70 { // it hears nothing but what it asks for
		require.Equal(t, 200, c.code("/readyz"))
		time.Sleep(100 * time.Millisecond)
	}
	proxy.BlackHole()
	cut := time.Now()
	eventually(t, "it is not ready", func() bool {
		asked := time.Since(cut)
		ready := c.code("/readyz") == 200
		if ready {
			last.Store(int64(asked))
		}
		return !ready
	})
	require.Positive(t, last.Load())
	require.Less(t, time.Duration(last.Load()), 6*time.Second)
	require.Equal(t, 200, c.code("/livez"))
	proxy.Heal()
	eventually(t, "it is ready again", func() bool { return c.code("/readyz") == 200 })
	leader.send(t, syscall.SIGTERM)
	require.Zero(t, e.status(t), "it was its turn")
}
