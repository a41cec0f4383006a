package sqlkv_test

import (
	"reflect"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

// The backend imports no driver, and looks for the number of an error in a field of a
// type that it knows by name.
func TestTheErrorOfMySQLsDriverIsWhatTheBackendLooksFor(t *testing.T) {
	kind := reflect.TypeFor[mysql.MySQLError]()
	require.Equal(t, "MySQLError", kind.Name())
	number, found := kind.FieldByName("Number")
	require.True(t, found)
	require.Equal(t, reflect.Uint16, number.Type.Kind())
}
