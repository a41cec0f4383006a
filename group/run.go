package group

import (
	"context"
	"errors"

	"github.com/electkv/election/internal/invitation"
)

// errOver is why the context given to lead has ended, if nothing else is.
var errOver = errors.New("group: the group is over")

// A work is what lead does for one group.
type work struct {
	group  invitation.Group
	cancel context.CancelCauseFunc
}

// Run calls lead once for each group that this process leads, on the caller's goroutine.
//
// The context given to lead ends when the group is over, when ctx ends, or when the member is
// closed. Until lead has returned, this process is in no other group, and for up to
// [Options.Drain] the processes that merge with it wait for that too. So lead must return soon
// after its context has ended.
//
// What happens when lead returns:
//
//   - while the group lasts: Run returns lead's result. The member stays in the group and leads it,
//     without work, until Close;
//   - after the group was over: Run drops lead's result, and logs it if it says more than that
//     the work was told to stop. It waits for the next group to lead;
//   - after ctx ended: Run returns ctx's cause;
//   - after Close: Run returns [ErrClosed].
//
// One call of Run may be under way at a time. If the process leads a group when Run is called, lead
// is called for that.
func (m *Member) Run(ctx context.Context, lead func(ctx context.Context, g Group) error) error {
	if lead == nil {
		return errors.New("group: lead is nil: give Run the work to do")
	}
	m.mu.Lock()
	busy := m.running
	m.running = true
	m.mu.Unlock()
	if busy {
		return errors.New("group: Run is under way already: one call at a time leads")
	}
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running = false
	}()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		working, w, changed, err := m.begin(ctx)
		switch {
		case err != nil:
			return err
		case w == nil:
			select {
			case <-changed:
			case <-m.done:
			case <-ctx.Done():
			}
		default:
			over, result := m.do(working, w, lead)
			if ctx.Err() == nil && !over {
				return result
			}
			m.dropped(result)
		}
	}
}

// begin begins the work for a group that this process leads. If there is none, it returns what
// tells of a change.
func (m *Member) begin(ctx context.Context) (context.Context, *work, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, nil, nil, ErrClosed
	case m.group.Leader() != invitation.ID(m.self):
		return nil, nil, m.changed, nil
	}
	working, cancel := context.WithCancelCause(ctx)
	m.work = &work{m.group, cancel}
	return working, m.work, nil, nil
}

// do calls lead, and reports whether the group was over by the time that it returned. Then nothing
// waits for it any more, even if it has panicked.
func (m *Member) do(ctx context.Context, w *work, lead func(context.Context, Group) error) (over bool, result error) {
	defer func() { over = m.end(w) }()
	return false, lead(ctx, public(w.group))
}

// end takes in that lead has returned, and reports whether its group is over.
func (m *Member) end(w *work) (over bool) {
	var effects []invitation.Effect
	m.mu.Lock()
	m.work = nil
	if over = m.group.Number != w.group.Number; over {
		effects = m.step(returned(w.group.Number))
	}
	m.mu.Unlock()
	w.cancel(nil)
	m.carryOut(effects)
	return over
}

// dropped logs a result of lead that Run does not return, unless it only says that the work
// was told to stop.
func (m *Member) dropped(result error) {
	if result != nil && result != context.Canceled && result != errOver { //nolint:errorlint // what wraps it may say more
		m.log.Info("the work was ended, and returned an error", "event", "work_failed", "error", result)
	}
}
