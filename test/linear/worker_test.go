//go:build unix

package linear_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/kv"
)

// workerVariable names the directory to a process that this test starts of
// itself to use the file store.
const workerVariable = "ELECTION_LINEAR_WORKER"

// An order is an operation that a worker is to carry out.
type order struct {
	ID        int
	Kind      linear.Kind
	Name      string
	Rec, Next kv.Record
	Time      time.Duration // at most
}

// An answer is what has become of an order.
type answer struct {
	ID    int
	Rec   kv.Record
	Is    linear.Outcome
	Error string
}

// work is a worker's life: it carries out the orders that come in, until they
// end.
func work(dir string) (status int) {
	store, err := filekv.New(dir, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		err := orders.Decode(&o)
		if errors.Is(err, io.EOF) {
			return 0
		}
		if err == nil {
			err = answers.Encode(carryOut(store, o))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

func carryOut(store kv.Store, o order) answer {
	ctx, cancel := context.WithTimeout(context.Background(), o.Time)
	defer cancel()
	a := answer{ID: o.ID, Is: linear.Unknown}
	var err error
	switch o.Kind {
	case linear.Create:
		a.Rec, err = store.Create(ctx, o.Name, o.Rec)
	case linear.Swap:
		a.Rec, err = store.Swap(ctx, o.Name, o.Rec, o.Next)
	case linear.Refresh:
		a.Rec, err = store.Refresh(ctx, o.Name, o.Rec)
	case linear.Delete:
		err = store.Delete(ctx, o.Name, o.Rec)
	case linear.Get:
		a.Rec, err = store.Get(ctx, o.Name)
	default:
		err = fmt.Errorf("no order: %q", o.Kind)
	}
	if err == nil {
		a.Is = linear.Done
		return a
	}
	a.Error = err.Error()
	for is, definite := range definites() {
		if errors.Is(err, definite) {
			a.Is = is
		}
	}
	return a
}

func definites() map[linear.Outcome]error {
	return map[linear.Outcome]error{
		linear.Held: kv.ErrHeld, linear.Vacant: kv.ErrVacant, linear.Stale: kv.ErrStale, linear.Invalid: kv.ErrInvalid,
	}
}

// err returns what the answer stands for.
func (a answer) err() error {
	if a.Is == linear.Done {
		return nil
	}
	if definite := definites()[a.Is]; definite != nil {
		return fmt.Errorf("%s: %w", a.Error, definite)
	}
	return errors.New(a.Error)
}

// A worker is a file store in a process of its own, for one client that does one
// thing at a time.
type worker struct {
	kv.Store // none: nobody watches here

	t       testing.TB
	cmd     *exec.Cmd
	orders  *json.Encoder
	answers chan answer // closed when the process has ended
	last    int
}

// startWorker starts a process that ends with the test.
func startWorker(t testing.TB, dir string) *worker {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerVariable+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	w := &worker{t: t, cmd: cmd, orders: json.NewEncoder(in), answers: make(chan answer, 1024)}
	go func() {
		defer close(w.answers)
		for lines := json.NewDecoder(out); ; {
			var a answer
			if lines.Decode(&a) != nil {
				return
			}
			w.answers <- a
		}
	}()
	t.Cleanup(w.kill)
	return w
}

var errGone = errors.New("the process has ended")

// call has an order carried out. Answers to orders that were given up are
// skipped.
func (w *worker) call(ctx context.Context, o order) (kv.Record, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return kv.Record{}, errors.New("an order without a deadline")
	}
	w.last++
	o.ID, o.Time = w.last, time.Until(deadline)
	if err := w.orders.Encode(o); err != nil {
		return kv.Record{}, fmt.Errorf("%w: %w", errGone, err)
	}
	for {
		select {
		case a, ok := <-w.answers:
			if !ok {
				return kv.Record{}, errGone
			}
			if a.ID == o.ID {
				return a.Rec, a.err()
			}
		case <-ctx.Done():
			return kv.Record{}, context.Cause(ctx)
		}
	}
}

func (w *worker) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return w.call(ctx, order{Kind: linear.Create, Name: name, Rec: rec})
}

func (w *worker) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return w.call(ctx, order{Kind: linear.Swap, Name: name, Rec: old, Next: next})
}

func (w *worker) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return w.call(ctx, order{Kind: linear.Refresh, Name: name, Rec: rec})
}

func (w *worker) Delete(ctx context.Context, name string, rec kv.Record) error {
	_, err := w.call(ctx, order{Kind: linear.Delete, Name: name, Rec: rec})
	return err
}

func (w *worker) Get(ctx context.Context, name string) (kv.Record, error) {
	return w.call(ctx, order{Kind: linear.Get, Name: name})
}

// pause stops the process where it stands; it takes the kernel a moment.
func (w *worker) pause() { require.NoError(w.t, w.cmd.Process.Signal(syscall.SIGSTOP)) }

func (w *worker) resume() { require.NoError(w.t, w.cmd.Process.Signal(syscall.SIGCONT)) }

// kill ends the process and waits until it is gone. Killing it twice is fine.
func (w *worker) kill() {
	if w.cmd.ProcessState != nil {
		return
	}
	_ = w.cmd.Process.Kill() // Wait says how it has ended
	_ = w.cmd.Wait()
}
