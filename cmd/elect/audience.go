//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/cmd/elect/internal/page"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

const (
	// seating is how long a demo waits for a browser before it begins.
	seating = 15 * time.Second
	// reload is how long a browser may be away and come back.
	reload = 3 * time.Second

	stretch    = 20 * time.Second       // how much of it the page shows
	seatsPause = 100 * time.Millisecond // between two looks at how many are there
)

// An audience watches a demo on a page. The zero audience is none, and nothing is done for it.
type audience struct {
	name    string // of the election
	story   *chronicle.Chronicle
	page    *page.Page
	states  map[string]string // of candidates, in a word, if the store does not tell
	close   context.CancelFunc
	serving sync.WaitGroup
}

// openAudience serves a page of the demo's election, and says where on out.
func openAudience(ctx context.Context, listen string, store *stores.Store, name string, log *slog.Logger, out io.Writer) (*audience, error) {
	l, err := listenAt(ctx, listen)
	if errors.Is(err, errInUse) && listen == defaultListen {
		l, err = listenAt(ctx, anyPort)
	}
	if err != nil {
		return nil, err
	}
	announcePage(out, log, l)
	a := &audience{name: name, story: chronicle.New(store.KV), states: map[string]string{}}
	a.story.Follow(name)
	a.page = page.New(a.story, store.Address.String(), stretch)
	a.serve(ctx, l, log)
	return a, nil
}

func (a *audience) serve(ctx context.Context, l net.Listener, log *slog.Logger) {
	ctx, a.close = context.WithCancel(context.WithoutCancel(ctx)) // Ctrl-C ends the demo first
	a.serving.Go(func() {
		if err := a.page.Serve(ctx, l); err != nil {
			log.Error("the page cannot be shown", "error", err)
		}
	})
}

// wait lets time pass until somebody looks at the page, but not for ever.
func (a *audience) wait(ctx context.Context, progress io.Writer) {
	fmt.Fprintf(progress, "Open the page: the demo begins then, or in %v.\n", seating)
	late := time.Now().Add(seating)
	for a.page.Streams() == 0 && time.Now().Before(late) && sleep(ctx, seatsPause) {
	}
}

// tell shows what the store does not tell.
func (a *audience) tell(e history.Event) {
	if a.page == nil {
		return
	}
	switch e.Kind {
	case history.Ready, history.Woken:
		a.states[e.Who] = ""
	case history.Killed:
		a.states[e.Who] = "killed"
	case history.Stopped:
		a.states[e.Who] = "asleep"
	case history.Asked:
	default:
		return
	}
	cast := []chronicle.Candidate{}
	for _, id := range slices.Sorted(maps.Keys(a.states)) {
		cast = append(cast, chronicle.Candidate{ID: id, State: a.states[id]})
	}
	a.story.SetCandidates(a.name, cast)
	if what, sign := deed(e); sign != "" {
		a.story.Mark(a.name, chronicle.Mark{At: e.At, Who: e.Who, What: what, Sign: sign})
	}
}

// deed returns what is done to a candidate in an event, and the sign for it.
func deed(e history.Event) (what, sign string) {
	switch e.Kind {
	case history.Killed:
		return "is killed (SIGKILL)", "K"
	case history.Stopped:
		return "is put to sleep (SIGSTOP)", "S"
	case history.Woken:
		return "is woken (SIGCONT)", "C"
	case history.Asked:
		return "is asked " + e.Text, "A"
	}
	return "", ""
}

// freeze keeps what is seen as it is now. What comes after it is only that all go home.
func (a *audience) freeze() {
	if a.page == nil {
		return
	}
	a.story.Close()
	a.page.End("The demo is over.", true)
}

// applaud shows which promises were kept, until nobody looks any more.
func (a *audience) applaud(ctx context.Context, findings oracle.Findings, progress io.Writer) {
	if a.page == nil || a.page.Streams() == 0 {
		return
	}
	a.page.End(judgement(findings), findings.AllKept())
	fmt.Fprintf(progress, "\nThe page stays until it is closed, or Ctrl-C.\n")
	for seen := time.Now(); time.Since(seen) < reload && sleep(ctx, seatsPause); {
		if a.page.Streams() > 0 {
			seen = time.Now()
		}
	}
}

// judgement says in a sentence which promises were kept.
func judgement(findings oracle.Findings) string {
	found := map[oracle.Verdict][]string{}
	for _, f := range findings {
		text := f.Promise
		if f.Verdict != oracle.Kept {
			text += " (" + f.Detail + ")"
		}
		found[f.Verdict] = append(found[f.Verdict], text)
	}
	text := "The demo is over. "
	if broken := found[oracle.Broken]; len(broken) > 0 {
		text += "BROKEN: " + strings.Join(broken, ", ") + ". "
	}
	if unseen := found[oracle.Silent]; len(unseen) > 0 {
		text += "Not put to the test: " + strings.Join(unseen, ", ") + ". "
	}
	return text + fmt.Sprintf("Promises kept: %s.", strings.Join(found[oracle.Kept], ", "))
}

// leave ends the page.
func (a *audience) leave() {
	a.close()
	a.serving.Wait()
	a.story.Close()
}
