package sqlkv

import (
	"context"
	"errors"
	"fmt"
)

// errUnsuited means that there is a table, with the columns, that the statements
// cannot rely on.
var errUnsuited = errors.New("it cannot be relied on")

// A need is something of the table, besides its columns, without which a statement
// does other than it says. One made by hand may lack it, and nothing else tells.
type need struct {
	ask  string // a question with one row: is it there?
	lack string // what is missing, and what comes of it
	mend string // the statement that makes up for it
}

// uniqueName is what a claim rests on: insert makes a row only where there is none.
func uniqueName(ask, mend string) need {
	return need{ask, "name alone is in no unique index, so two rows may be one safe, and two own it", mend}
}

// exactExpiry is what each condition rests on that asks for the time.
func exactExpiry(ask, mend string) need {
	return need{ask, "expires has another type, so records may fade before their time, or never", mend}
}

// suits returns why the table cannot be relied on, and the statement that mends it.
func (t *table) suits(ctx context.Context) error {
	for _, n := range t.needs {
		var met bool
		found, err := t.query(ctx, t.book.say(n.ask, 0), t.where, &met)
		if err != nil {
			return err
		}
		if !found || !met {
			return fmt.Errorf("%w: %s: mend it by: %s", errUnsuited, n.lack, t.book.say(n.mend, 0).text)
		}
	}
	return nil
}
