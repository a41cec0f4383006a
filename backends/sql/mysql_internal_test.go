package sqlkv

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// MySQLError is the driver's error in all that is looked at: test/sql has the real one.
type MySQLError struct{ Number uint16 }

func (e *MySQLError) Error() string { return fmt.Sprintf("Error %d", e.Number) }

func TestTheNumberOfAMySQLErrorIsFoundHoweverItIsWrapped(t *testing.T) {
	deadlock := &MySQLError{Number: 1213}
	for _, err := range []error{
		deadlock, fmt.Errorf("in a statement: %w", deadlock),
		errors.Join(errors.New("another"), deadlock), fmt.Errorf("%w: %w", errors.New("another"), fmt.Errorf("%w", deadlock)),
	} {
		require.Equal(t, uint16(1213), mysqlNumber(err), "%v", err)
		require.True(t, mysqlConflict(err))
	}
	for _, err := range []error{nil, errors.New("Error 1213"), (*MySQLError)(nil), errors.Join(errors.New("a"), errors.New("b"))} {
		require.Zero(t, mysqlNumber(err))
	}
}
