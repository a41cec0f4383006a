package trace

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election/internal/machine"
)

// fill puts something that is not zero into all of a value but its functions.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "text")))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Int, reflect.Int8, reflect.Int64:
		bits := v.Type().Bits()
		v.SetInt(rapid.Int64Range(math.MinInt64>>(64-bits), math.MaxInt64>>(64-bits)).Draw(t, "number"))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, math.MaxUint64>>(64-v.Type().Bits())).Draw(t, "number"))
	case reflect.Slice:
		if n := rapid.IntRange(-1, 2).Draw(t, "length"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.Func:
	default:
		t.Fatalf("a kind that no text is known of: %s", v.Type())
	}
}

func TestTheTextOfWhatTheCoreIsGivenSaysAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b, gotB machine.Beginning
		fill(t, reflect.ValueOf(&b).Elem())
		require.NoError(t, read(textOf(b), &gotB))
		require.Equal(t, b, gotB)
		var m, gotM machine.Move
		fill(t, reflect.ValueOf(&m).Elem())
		require.NoError(t, read(textOf(m), &gotM))
		require.Equal(t, m, gotM)
	})
}

func TestATextOfSomethingElseIsRefused(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"Nonce": 1}`, `{"Shoe": 1}`, `{"Nonce": "\u0000%"}`, `{"Effects": [{"Record": {"Note": "\u0000%"}}]}`} {
		require.Error(t, read([]byte(text), &machine.Move{}), text)
	}
}
