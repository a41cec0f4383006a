//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/cmd/elect/internal/order"
	"github.com/electkv/election/cmd/elect/internal/reserved"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/kv"
)

const demoLong = `Show an election of three processes, and check its promises.

Three candidates start, and one leads. The demo kills it (SIGKILL), and the next one
leads. The demo stops that one (SIGSTOP) until the third has taken over, and then
wakes it (SIGCONT): it must find out that its term is over before it does any more of
its work. Each candidate writes down what it believes and when, on a clock that all
share. From these records the demo draws the timeline and checks the promises.

With an ORDER the demo shows a succession instead: one of the waiting candidates is
the heir, and leaders hand over in one write.
  first  the candidate that came first is next; two leaders are asked to go, one is
         killed
  rank   higher ranks displace lower ones; the highest sleeps, and comes back
  ring   the leadership goes round, past a candidate that was killed
  list   the leader names the candidates that are next

elect demo groups shows groups instead, which exclude nobody.

With --serve, a page shows the same live. The demo begins when a browser has opened
the page, or after 15 seconds. The page stays until it is closed, or Ctrl-C. elect serve
has that page for elections of your own.

Without --store and ELECT_STORE, the demo uses a temporary directory. It leaves
nothing behind in any store, except what the store's own documentation says stays for
ever.

Exit status: 0 if all promises were kept, 1 if one was broken, 125 if elect
failed or not every promise was put to the test, 130 after Ctrl-C.`

// A demonstration is what elect demo is asked for.
type demonstration struct {
	*settings
	by            order.Name
	ttl           time.Duration
	listen        string // where a page shows it; empty for none
	out, progress io.Writer
}

func newDemo(s *settings) *cobra.Command {
	d := &demonstration{settings: s, by: order.None, progress: os.Stderr}
	cmd := &cobra.Command{
		Use:       "demo [flags] [ORDER]",
		Short:     "Show an election of three processes, and check its promises",
		Long:      demoLong,
		Example:   "  elect demo\n  elect demo --serve\n  elect demo rank --store redis://localhost",
		Args:      oneOrder,
		ValidArgs: order.Names()[1:],
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if len(args) == 1 {
				d.by = order.Name(args[0])
			}
			d.out = cmd.OutOrStdout()
			return d.run(ctx)
		},
	}
	cmd.AddCommand(newDemoGroups(s))
	cmd.Flags().DurationVar(&d.ttl, "ttl", 0, "TTL of the election (default the store's shortest that is not below 3s, with an ORDER 2s)")
	complete(cmd, "ttl", cobra.ShellCompDirectiveNoFileComp)
	cmd.Flags().StringVar(&d.listen, "serve", "", "show it on a page as well, at `ADDRESS`: --serve, or --serve=host:port")
	cmd.Flags().Lookup("serve").NoOptDefVal = defaultListen
	complete(cmd, "serve", cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

// oneOrder wants the name of an order, or nothing.
func oneOrder(_ *cobra.Command, args []string) error {
	names := order.Names()[1:]
	switch {
	case len(args) > 1:
		return fmt.Errorf("more than one ORDER: %q; use elect demo [flags] [ORDER]", args)
	case len(args) == 1 && !slices.Contains(names, args[0]):
		return fmt.Errorf("unknown ORDER %q; use %s, groups, or leave it out", args[0], strings.Join(names, ", "))
	}
	return nil
}

func (d *demonstration) run(ctx context.Context) error {
	url, remove, err := d.place()
	if err != nil {
		return err
	}
	defer remove()
	store, log, err := d.open(url)
	if err != nil {
		return err
	}
	defer store.Close()
	if d.ttl, err = demoTTL(store.KV, d.by, d.ttl); err != nil {
		return err
	}
	name := "elect-demo-" + strings.ToLower(rand.Text()[:8])
	if err := probe(ctx, store, name); err != nil {
		return err
	}
	crowd := &audience{}
	if d.listen != "" {
		if crowd, err = openAudience(ctx, d.listen, store, name, log, d.out); err != nil {
			return err
		}
		defer crowd.leave()
		crowd.wait(ctx, d.progress)
	}
	return d.perform(ctx, store, url, name, crowd)
}

// place returns the URL of the store. Without one it is a directory, which remove removes.
func (d *demonstration) place() (url string, remove func(), err error) {
	url, remove = d.store, func() {}
	if url == "" {
		url = os.Getenv(stores.Variable)
	}
	if url == "" {
		dir, err := os.MkdirTemp("", "elect-demo-")
		if err != nil {
			return "", nil, err
		}
		url, remove = stores.File(dir), func() { os.RemoveAll(dir) }
	}
	return url, remove, nil
}

// open opens a store that three processes can share.
func (d *demonstration) open(url string) (*stores.Store, *slog.Logger, error) {
	address, err := stores.Parse(url, os.Getenv)
	if err != nil {
		return nil, nil, err
	}
	log, err := d.logger()
	if err != nil {
		return nil, nil, err
	}
	d.warn(address, log)
	if err := address.Unshared(); err != nil {
		return nil, nil, err
	}
	store, err := address.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("store %w", err)
	}
	return store, log, nil
}

// perform plays, and says which promises were kept.
func (d *demonstration) perform(ctx context.Context, store *stores.Store, url, name string, crowd *audience) error {
	play := demo.Failover(d.ttl)
	if d.by != order.None {
		play = demo.Plays(d.ttl)[d.by]
	}
	fmt.Fprintf(d.progress, "elect %s: three candidates for %q in %v, TTL %v, %s. The clock starts now.\n\n", version(), name, store.Address, d.ttl, play.About)
	v := newView(d.progress)
	stage := &demo.Stage{
		Play:    play,
		Store:   store.KV,
		Name:    name,
		TTL:     d.ttl,
		Slack:   2*time.Second + d.ttl/2,
		Command: candidateCommand(url, name),
		Tell: func(e history.Event) {
			v.tell(e)
			crowd.tell(e)
		},
		Curtain: crowd.freeze,
	}
	played, err := stage.Perform(ctx)
	for _, safe := range append(reserved.Beside(name), name) {
		err = errors.Join(err, store.Forget(safe))
	}
	if ctx.Err() != nil {
		return exit{status: statusSignal + int(syscall.SIGINT), err: errors.New("interrupted; all processes and records of the demo are gone")}
	}
	findings := play.Judge(played)
	timeline := history.Timeline(played, 78) + "\n" + history.Legend()
	if play.Ordered() {
		timeline += "\n" + history.LegendOfHeirs()
	}
	err = conclude(d.out, timeline, played, findings, err)
	crowd.applaud(ctx, findings, d.progress)
	return err
}

// demoTTL returns the TTL asked for, or one that is short and that the store
// takes.
func demoTTL(store kv.Store, by order.Name, ttl time.Duration) (time.Duration, error) {
	if ttl != 0 {
		_, err := election.New(store, "demo", &election.Options{TTL: ttl})
		return ttl, err
	}
	least := 3 * time.Second
	if by != order.None {
		least = 2 * time.Second // more happens
	}
	ttl = leastTTL(least, taken(store))
	_, err := store.Lifetime(ttl)
	return ttl, err
}

func candidateCommand(url, name string) func(demo.Part) *exec.Cmd {
	return func(part demo.Part) *exec.Cmd {
		cmd := again(candidateRole, part, name)
		cmd.Env = append(os.Environ(), stores.Variable+"="+url)
		return cmd
	}
}

// again returns the command that runs this program in another role: elect ROLE WORDS... PART.
func again(role string, part any, words ...string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	text, err := json.Marshal(part)
	if err != nil {
		panic(err) // a part always has a text
	}
	return exec.Command(path, append(append([]string{role}, words...), string(text))...)
}

// conclude shows the timeline and says which promises were kept.
func conclude(out io.Writer, timeline string, played history.History, findings oracle.Findings, err error) error {
	fmt.Fprintf(out, "\n%s\n\n", timeline)
	for _, f := range findings {
		fmt.Fprintf(out, "%-8s%-26s%s\n", marks()[f.Verdict], f.Promise, f.Detail)
	}
	switch {
	case len(findings.Broken()) > 0:
		return exit{statusNo, errors.Join(errors.New("a promise was broken"), keepHistory(played), err)}
	case !findings.AllKept():
		return errors.Join(errors.New("not every promise was put to the test: this machine may be too busy; try again"), err)
	}
	return err
}

// marks begin the lines of findings.
func marks() map[oracle.Verdict]string {
	return map[oracle.Verdict]string{oracle.Kept: "kept", oracle.Broken: "BROKEN", oracle.Silent: "unseen"}
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
	case history.Became:
		if e.Value != history.Heir {
			return
		}
		text = "is next"
	case history.Asked:
		text = "is asked " + e.Text
	case history.Ended:
		text = "knows that its term is over: " + oneLine(errors.New(e.Text))
	case history.Killed:
		text = "is killed"
	case history.Stopped:
		text = "is put to sleep"
	case history.Woken:
		text = "is woken"
	default:
		return
	}
	v.line(e, text)
}

func (v *view) line(e history.Event, text string) {
	fmt.Fprintf(v.out, "%7.2f s  %-5s  %s\n", (e.At - v.begin).Seconds(), e.Who, text)
}
