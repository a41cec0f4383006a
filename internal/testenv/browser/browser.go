//go:build unix

// Package browser drives a real Chromium without a window, by the pipe on which it takes the
// commands of its developer tools (https://chromedevtools.github.io/devtools-protocol): what a
// page shows is asked of the page itself, and keys and the pointer are those of a user.
//
// A missing Chromium fails the test; "make test" gets one.
package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/testenv/install"
)

// patience is how long an answer of the browser, or what a test waits for, may take.
const patience = 60 * time.Second

// A Browser is a Chromium of the test's own. It ends with the test.
type Browser struct {
	t   testing.TB
	cmd *exec.Cmd
	log string

	mu      sync.Mutex
	in      *os.File
	serial  int
	waiting map[int]chan message
	tabs    map[string]*Tab // by session
	over    error           // why no answer comes any more
}

// A message is a command, its answer, or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := install.Chromium()
	if err != nil {
		t.Fatalf("browser: %v", err)
	}
	dir := t.TempDir()
	b := &Browser{t: t, log: filepath.Join(dir, "log"), waiting: map[int]chan message{}, tabs: map[string]*Tab{}}
	if err := b.start(path, dir); err != nil {
		t.Fatalf("browser: start %s: %v", path, err)
	}
	return b
}

func (b *Browser) start(path, dir string) error {
	args := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(dir, "profile"), "--no-first-run",
		"--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
		"--hide-scrollbars",
		"--no-sandbox", // which neither root nor many a container can have; the pages are the tests' own
		"about:blank",
	}
	log, err := os.Create(b.log)
	if err != nil {
		return err
	}
	defer log.Close()
	commands, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer commands.Close()
	out, answers, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close())
	}
	defer answers.Close()
	b.in = in
	b.cmd = exec.Command(path, args...)
	b.cmd.Env = append(os.Environ(), "HOME="+dir)
	b.cmd.Stdout, b.cmd.Stderr = log, log
	b.cmd.ExtraFiles = []*os.File{commands, answers} // 3 and 4
	testenv.Guard(b.t, b.cmd)
	if err := b.cmd.Start(); err != nil {
		return errors.Join(err, in.Close(), out.Close())
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.listen(out)
	}()
	b.t.Cleanup(func() { b.end(read) })
	return nil
}

// end asks the browser to end, and kills it if it does not.
func (b *Browser) end(read chan struct{}) {
	kill := time.AfterFunc(5*time.Second, func() { _ = b.cmd.Process.Kill() })
	defer kill.Stop()
	_, _ = b.call("", "Browser.close", nil) // it may have ended by itself
	_ = b.cmd.Wait()                        // however it ended
	<-read
	b.in.Close()
}

// listen hands out what the browser says, until it ends.
func (b *Browser) listen(out *os.File) {
	defer out.Close()
	in := bufio.NewReaderSize(out, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			b.fail(err)
			return
		}
		var m message
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m); err != nil {
			b.fail(err)
			return
		}
		b.mu.Lock()
		answer, tab := b.waiting[m.ID], b.tabs[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m
		case tab != nil:
			tab.hear(m)
		}
	}
}

// fail ends all waiting for answers.
func (b *Browser) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = fmt.Errorf("the browser has ended: %w", err)
	for id, answer := range b.waiting {
		close(answer)
		delete(b.waiting, id)
	}
}

// call carries out a command, of a tab if session names one.
func (b *Browser) call(session, method string, params any) (json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if params == nil {
		text = []byte("{}")
	}
	answer, err := b.send(message{Session: session, Method: method, Params: text})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: the browser has ended", method)
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-late.C:
		return nil, fmt.Errorf("%s: no answer within %v", method, patience)
	}
}

func (b *Browser) send(m message) (chan message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over != nil {
		return nil, b.over
	}
	b.serial++
	m.ID = b.serial
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	b.waiting[m.ID] = answer
	_, err = b.in.Write(append(text, 0))
	return answer, err
}

// must fails the test on an error. If the browser has ended, its log may say why.
func (b *Browser) must(err error) {
	b.t.Helper()
	if err == nil {
		return
	}
	b.mu.Lock()
	over := b.over
	b.mu.Unlock()
	if over != nil {
		log, _ := os.ReadFile(b.log)
		err = fmt.Errorf("%w\n%s", err, log[max(0, len(log)-2000):])
	}
	b.t.Fatalf("browser: %v", err)
}
