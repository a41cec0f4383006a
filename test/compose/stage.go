package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

// A stage is where candidates of "elect demo" stand in an election, in processes of
// their own, while servers of their store fail.
type stage struct {
	elect   string // the program
	name    string // of the election
	cluster *cluster
	log     io.Writer

	cast map[string]*candidate
	url  map[string]int // of each who was ever there
	mu   sync.Mutex
	past history.History
}

// A candidate is a process.
type candidate struct {
	*witness.Process
	said bytes.Buffer
}

// enter starts a candidate, with the cluster's URL of that number.
func (s *stage) enter(who string, url int) error {
	part, err := json.Marshal(map[string]any{"id": who, "ttl": ttl})
	if err != nil {
		return err
	}
	cmd := exec.Command(s.elect, "__candidate", s.name, string(part)) //nolint:noctx // it ends in order
	cmd.Env = append(os.Environ(), "ELECT_STORE="+s.cluster.urls[url])
	c := &candidate{}
	cmd.Stderr = &c.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the play
	if c.Process, err = witness.Start(cmd, s.note); err != nil {
		return err
	}
	s.cast[who], s.url[who] = c, url
	return nil
}

// note writes down what happens, in the order in which it is heard of.
func (s *stage) note(e history.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.Events = append(s.past.Events, e)
	switch e.Kind {
	case history.Fault, history.Healed, history.Killed:
		fmt.Fprintf(s.log, "%s: %s%s\n", s.cluster.name, e.Who, e.Text)
	case history.Elected:
		fmt.Fprintf(s.log, "%s: %s leads, with token %d\n", s.cluster.name, e.Who, e.Token)
	}
}

// due notes that from now on somebody other than not is to lead within a time, and
// waits until somebody does.
func (s *stage) due(ctx context.Context, not string, within time.Duration, after string) (who string, err error) {
	now := boottime.Now()
	s.note(history.Event{At: now, Who: not, Kind: history.Due, Within: within, Text: after})
	return s.leader(ctx, not, now, within+slack)
}

// leader waits until somebody other than not shows that it leads after an instant,
// and returns its name.
func (s *stage) leader(ctx context.Context, not string, after, patience time.Duration) (string, error) {
	signs := []history.Kind{history.Elected, history.Extended}
	for end := boottime.Now() + patience; boottime.Now() < end; {
		s.mu.Lock()
		for _, e := range slices.Backward(s.past.Events) {
			if e.At > after && e.Who != not && slices.Contains(signs, e.Kind) {
				s.mu.Unlock()
				return e.Who, nil
			}
		}
		s.mu.Unlock()
		if !sleep(ctx, 20*time.Millisecond) {
			return "", ctx.Err()
		}
	}
	return "", fmt.Errorf("nobody led within %v", patience)
}

// kill ends a candidate as a crash would.
func (s *stage) kill(who string) error {
	s.note(history.Event{At: boottime.Now(), Who: who, Kind: history.Killed, Text: " is killed"})
	c := s.cast[who]
	delete(s.cast, who)
	err := c.Cmd.Process.Kill()
	_ = c.Wait() // it was killed
	return err
}

// leave ends all candidates.
func (s *stage) leave() error {
	var errs []error
	for who, c := range s.cast {
		err := c.Stdin.Close()
		kill := time.AfterFunc(slack, func() { c.Signal(syscall.SIGKILL) })
		if err := errors.Join(err, c.Wait()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %s", who, err, lastLine(c.said.String())))
		}
		kill.Stop()
	}
	return errors.Join(errs...)
}
