package storeurl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Forget removes what the store keeps of a name beyond its last record, so that
// tokens grow over it: only for a name that was made up for one occasion. The
// name must be of lower-case letters, digits, "-" and ":".
func (s *Store) Forget(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	key := s.Key(name)
	var err error
	switch {
	case s.Redis != nil: // see the package documentation of rediskv
		for _, stem := range []string{"{" + key + "}", key + ":"} {
			for _, ending := range []string{":election-fence", ":election-server", ":election-record"} {
				err = errors.Join(err, s.Redis.Del(ctx, stem+ending).Err())
			}
		}
	case s.Consul != nil: // the key, which is left in place, and what was beside it
		err = errors.Join(s.forgetConsul(ctx, key), s.forgetConsul(ctx, key+".election"))
	case s.SQL != nil:
		err = s.SQL.forget(ctx, key)
	case s.Dir != "":
		err = os.RemoveAll(filepath.Join(s.Dir, "safes", strings.ReplaceAll(name, ":", "%3a")))
	}
	if err != nil {
		return fmt.Errorf("remove what is left of %q: %w", name, err)
	}
	return nil
}
