//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/cmd/elect/internal/storeurl"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/kv"
)

const demoLong = `Show an election of three processes, and check its promises.

Three candidates start, and one leads. It is killed (SIGKILL), and the next one
leads. That one is put to sleep (SIGSTOP) until the third has taken over, and is
woken (SIGCONT): it must find out that its term is over before it does any more
of its work. Each candidate writes down what it believes, when, on a clock that
all share; from these records the timeline is drawn and the promises are checked.

Without --store, or ELECT_STORE, a temporary directory is used. Nothing is left
behind in any store, except what its own documentation says stays for ever.

Exit status: 0 if all promises were kept, 1 if one was broken, 125 if elect
failed, 130 after Ctrl-C.`

func newDemo(s *settings) *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Show an election of three processes, and check its promises",
		Long:  demoLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return runDemo(ctx, s, ttl, cmd.OutOrStdout(), os.Stderr)
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "TTL of the election (default the store's shortest that is not below 3s)")
	complete(cmd, "ttl", cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

func runDemo(ctx context.Context, s *settings, ttl time.Duration, out, progress io.Writer) (err error) {
	url := s.store
	if url == "" {
		url = os.Getenv("ELECT_STORE")
	}
	if url == "" {
		dir, err := os.MkdirTemp("", "elect-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		url = storeurl.File(dir)
	}
	address, err := storeurl.Parse(url, os.Getenv)
	if err != nil {
		return err
	}
	if address.Kind == "mem" {
		return errors.New("store mem: is for one process, and the demo has three; use file:///directory")
	}
	store, err := address.Open()
	if err != nil {
		return fmt.Errorf("store %w", err)
	}
	defer store.Close()
	if ttl, err = demoTTL(store, ttl); err != nil {
		return err
	}
	name := "elect-demo-" + strings.ToLower(rand.Text()[:8])
	if err := probe(ctx, store, name); err != nil {
		return err
	}
	fmt.Fprintf(progress, "Three candidates for %q in %v, TTL %v. The clock starts now.\n\n", name, address, ttl)
	view := newView(progress)
	stage := &demo.Stage{
		Store:   store,
		Name:    name,
		TTL:     ttl,
		Slack:   2*time.Second + ttl/2,
		Command: candidateCommand(url, name, ttl),
		Tell:    view.tell,
	}
	played, err := stage.Play(ctx)
	err = errors.Join(err, store.Forget(name))
	if ctx.Err() != nil {
		return exit{status: statusSignal + int(syscall.SIGINT), err: errors.New("interrupted; all processes and records of the demo are gone")}
	}
	return conclude(out, played, err)
}

// demoTTL returns the TTL asked for, or one that is short and that the store
// takes.
func demoTTL(store kv.Store, ttl time.Duration) (time.Duration, error) {
	if ttl != 0 {
		_, err := election.New(store, "demo", &election.Options{TTL: ttl})
		return ttl, err
	}
	var err error
	for _, ttl := range []time.Duration{3 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second} {
		if _, err = store.Lifetime(ttl); err == nil {
			return ttl, nil
		}
	}
	return 0, err
}

func candidateCommand(url, name string, ttl time.Duration) func(id string) *exec.Cmd {
	return func(id string) *exec.Cmd {
		path, err := os.Executable()
		if err != nil {
			path = os.Args[0]
		}
		cmd := exec.Command(path, candidateRole, name, id, ttl.String())
		cmd.Env = append(os.Environ(), "ELECT_STORE="+url)
		return cmd
	}
}

// conclude draws the timeline and says which promises were kept.
func conclude(out io.Writer, played history.History, err error) error {
	findings := demo.Judge(played)
	fmt.Fprintf(out, "\n%s\n%s\n\n", history.Timeline(played, 78), history.Legend())
	for _, f := range findings {
		mark := "kept    "
		if f.Verdict != oracle.Kept {
			mark = "BROKEN  "
		}
		fmt.Fprintf(out, "%s%-24s%s\n", mark, f.Promise, f.Detail)
	}
	switch {
	case !findings.AllKept():
		return exit{statusNo, errors.Join(errors.New("a promise was broken"), keepHistory(played), err)}
	case err != nil:
		return err
	}
	return nil
}

// keepHistory saves a history that broke a promise, and says where.
func keepHistory(played history.History) error {
	f, err := os.CreateTemp("", "elect-demo-*.ndjson")
	if err != nil {
		return err
	}
	if err := errors.Join(history.Write(f, played), f.Close()); err != nil {
		return err
	}
	return fmt.Errorf("what happened is in %s", f.Name())
}

// A view tells what happens while it happens.
type view struct {
	out   io.Writer
	begin time.Duration
}

func newView(out io.Writer) *view {
	return &view{out: out, begin: boottime.Now()}
}

func (v *view) tell(e history.Event) {
	var text string
	switch e.Kind {
	case history.Ready:
		text = "stands as a candidate"
	case history.Elected:
		text = fmt.Sprintf("LEADS, with token %d", e.Token)
	case history.Ended:
		text = "knows that its term is over: " + e.Text
	case history.Killed:
		text = "is killed"
	case history.Stopped:
		text = "is put to sleep"
	case history.Woken:
		text = "is woken"
	default:
		return
	}
	fmt.Fprintf(v.out, "%7.2f s  %-5s  %s\n", (e.At - v.begin).Seconds(), e.Who, text)
}
