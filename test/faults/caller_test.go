//go:build linux

package faults

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// How often a caller asks a process who leads, and scrapes it: the latter so often in a TTL.
const (
	askPace      = 50 * time.Millisecond
	scrapesInTTL = 4
)

// A caller asks the candidates of a process over HTTP whether they lead, and for their metrics. If
// there are several, each question goes to the next one. What comes of it goes to note.
type caller struct {
	part   part
	addr   string
	note   func(history.Event)
	client http.Client
	ctx    context.Context
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// newListener returns a listener on the loopback interface of this network as a file for another
// process. That one's end closes it.
func newListener() (file *os.File, addr string, err error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	defer listener.Close()
	file, err = listener.(*net.TCPListener).File()
	return file, listener.Addr().String(), err
}

// newCaller begins to call.
func newCaller(p part, addr string, note func(history.Event)) *caller {
	c := &caller{part: p, addr: addr, note: note, client: http.Client{
		Timeout:   scrapeEach(p.TTL), // a scrape has until the next one is due
		Transport: &http.Transport{DisableCompression: true},
	}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.all.Go(func() { c.call(askPace, c.ask) })
	c.all.Go(func() { c.call(scrapeEach(p.TTL), c.scrape) })
	return c
}

// scrapeEach is the pause between two scrapes.
func scrapeEach(ttl time.Duration) time.Duration { return ttl / scrapesInTTL }

// end stops all calls, and waits for them. A nil caller does not call.
func (c *caller) end() {
	if c == nil {
		return
	}
	c.stop()
	c.all.Wait()
	c.client.CloseIdleConnections()
}

// finally scrapes each candidate once more: what has ended just now is to be seen, too.
func (c *caller) finally() {
	if c == nil {
		return
	}
	for _, who := range c.part.Who {
		c.scrape(who)
	}
}

// call puts a question again and again.
func (c *caller) call(pace time.Duration, question func(who string)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		question(c.part.Who[n%len(c.part.Who)])
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// ask asks whether a candidate leads.
func (c *caller) ask(who string) {
	c.put(history.Event{Who: who, Kind: history.Said, Result: history.No}, "/leader", func(code int, body io.Reader, e *history.Event) error {
		if code != http.StatusOK {
			return nil
		}
		e.Result = history.Yes
		var said struct{ Token uint64 }
		_ = json.NewDecoder(body).Decode(&said) // whatever it says, it is a yes
		e.Token = said.Token
		return nil
	})
}

// scrape asks for a candidate's metrics.
func (c *caller) scrape(who string) {
	c.put(history.Event{Who: who, Kind: history.Scraped, Result: history.OK}, "/metrics", func(code int, body io.Reader, e *history.Event) error {
		if code != http.StatusOK {
			e.Result = history.Unknown // the candidate has not been made yet
			return nil
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(body)
		if err != nil {
			return err
		}
		for _, m := range families["election_is_leader"].GetMetric() {
			e.Count = int(m.GetGauge().GetValue())
		}
		for _, m := range families["election_token"].GetMetric() {
			e.Token = uint64(m.GetGauge().GetValue())
		}
		e.Ends = map[string]int{}
		for _, m := range families["election_terms_ended_total"].GetMetric() {
			if n := int(m.GetCounter().GetValue()); n > 0 {
				e.Ends[reasonIn(m)] = n
			}
		}
		return nil
	})
}

func reasonIn(m *dto.Metric) string {
	for _, label := range m.GetLabel() {
		if label.GetName() == "reason" {
			return label.GetValue()
		}
	}
	return ""
}

// put puts a question, and notes what came of it, unless the caller is stopped meanwhile.
func (c *caller) put(e history.Event, path string, read func(code int, body io.Reader, e *history.Event) error) {
	request, err := http.NewRequestWithContext(c.ctx, http.MethodGet, "http://"+c.addr+pathOf(c.part.Name, e.Who)+path, nil)
	if err != nil {
		panic(err)
	}
	nothing := history.Event{Who: e.Who, Kind: e.Kind, Result: history.Unknown}
	begin := boottime.Now()
	response, err := c.client.Do(request)
	if err == nil {
		err = read(response.StatusCode, response.Body, &e)
		_, _ = io.Copy(io.Discard, response.Body) // so that the connection is used again
		response.Body.Close()
	}
	if c.ctx.Err() != nil {
		return
	}
	if err != nil {
		e = nothing
	}
	e.At, e.Within = begin, boottime.Now()-begin
	c.note(e)
}
