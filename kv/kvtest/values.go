package kvtest

import (
	"bytes"
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const anyValue = "Value is what the owner publishes: any bytes."

var valueCases = []Case{
	{Name: "any bytes can be a value", Clause: anyValue, check: anyBytesCanBeAValue},
	{Name: "a value may look like a record", Clause: anyValue, check: aValueMayLookLikeARecord},
	{
		Name:   "a value that is too large is refused whole",
		Clause: "Create returns ErrInvalid if name, value or TTL are not to be had in this store. " + invalid,
		check:  aValueThatIsTooLargeIsRefusedWhole,
	},
}

var signatureCases = []Case{
	{
		Name:   "any string can be a signature",
		Clause: "Signature is opaque to the store.",
		check:  anyStringCanBeASignature,
	},
}

func anyBytesCanBeAValue(t *trial) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	t.carries([]string{
		"", " ", "0", "null", "v", "héllo 世界 🗝", "line\nbreak\r\n", "\x00", "a\x00b", "\xff\xfe", "\ufffd", "\xed\xa0\x80",
		"<b>&amp;</b>\u2028", string(every), strings.Repeat("x", 64<<10), string(bytes.Repeat(every, 256)),
	})
}

func aValueMayLookLikeARecord(t *trial) {
	other := t.signed("inner")
	other.Token, other.Revision = 1, 1
	t.carries([]string{
		kv.Encode(other), kv.Encode(kv.Record{Signature: "s", Value: kv.Encode(other), TTL: 1}),
		"{}", "[]", `""`, `{"election":1}`, `{"election":2,"signature":"s","ttl_ms":1}`,
		`","signature":"stolen","value":"`, `{"value":"`, `"}`, `\`, `\u0000`,
	})
}

// carries requires that a safe keeps each value as it is, from a create and
// from a swap, and that a watch yields it so.
func (t *trial) carries(values []string) {
	t.Helper()
	published := t.name()
	last := t.create(t.s, published, t.signed("before"))
	w := t.watch(t.open(), published)
	w.sees(last)
	for _, value := range values {
		name := t.name()
		rec := t.create(t.s, name, t.signed(value))
		t.valued(rec, value)
		t.holds(name, rec)
		rec = t.refresh(t.s, name, rec)
		t.valued(rec, value)
		last = t.publish(t.s, published, last, value)
		t.valued(last, value)
		t.holds(published, last)
		w.sees(last)
		t.valued(t.refresh(t.s, published, last), value)
		t.delete(t.s, name, rec)
		t.vacant(name)
	}
}

func (t *trial) valued(rec kv.Record, value string) {
	t.Helper()
	if rec.Value != value {
		require.FailNow(t, "the value has changed", "want %.200q\ngot  %.200q", value, rec.Value)
	}
}

func aValueThatIsTooLargeIsRefusedWhole(t *trial) {
	published := t.name()
	last := t.create(t.s, published, t.signed("small"))
	for _, size := range []int{256 << 10, 512 << 10, 1 << 20, 2 << 20, 5 << 20} {
		large := strings.Repeat("x", size)
		name := t.name()
		rec, err := t.s.Create(t.ctx, name, t.signed(large))
		if errors.Is(err, kv.ErrInvalid) {
			t.vacant(name)
		} else {
			require.NoError(t, err, "create with %d bytes", size)
			require.True(t, rec.Value == large, "the value that was stored is another")
			require.True(t, t.get(t.s, name) == rec, "the value that was read is another")
			t.delete(t.s, name, rec)
		}
		next := last
		next.Value = large
		got, err := t.s.Swap(t.ctx, published, last, next)
		if errors.Is(err, kv.ErrInvalid) {
			require.True(t, t.get(t.s, published) == last, "a refused publication changed the record")
		} else {
			require.NoError(t, err, "publish %d bytes", size)
			require.True(t, t.get(t.s, published) == got, "the value that was read is another")
			last = got
		}
		t.refresh(t.s, published, last)
	}
}

func anyStringCanBeASignature(t *trial) {
	for _, odd := range []string{
		"s", " ", "0", "a b", "ключ 🗝", `"`, `\`, "'", "{}", "\n", "\x00", "<&>", "%s", "*", strings.Repeat("s", 1<<10),
	} {
		name, rec := t.name(), t.signed("v")
		rec.Signature = odd
		got := t.create(t.s, name, rec)
		require.Equal(t, odd, got.Signature)
		t.holds(name, got)
		got = t.publish(t.s, name, t.refresh(t.s, name, got), "w")
		require.Equal(t, odd, got.Signature)
		t.holds(name, got)
		t.delete(t.s, name, got)
		t.vacant(name)
	}
}
