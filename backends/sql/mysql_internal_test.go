package sqlkv

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

func TestTheNumberOfAMySQLErrorIsFoundHoweverItIsWrapped(t *testing.T) {
	deadlock := &mysql.MySQLError{Number: 1213, Message: "Deadlock found"}
	for _, err := range []error{
		deadlock, fmt.Errorf("in a statement: %w", deadlock),
		errors.Join(errors.New("another"), deadlock), fmt.Errorf("%w: %w", errors.New("another"), fmt.Errorf("%w", deadlock)),
	} {
		require.Equal(t, uint16(1213), mysqlNumber(err), "%v", err)
		require.True(t, mysqlConflict(err))
	}
	for _, err := range []error{nil, errors.New("Error 1213"), mysql.ErrInvalidConn, (*mysql.MySQLError)(nil), errors.Join(errors.New("a"), errors.New("b"))} {
		require.Zero(t, mysqlNumber(err))
	}
}
