package kvtest

import (
	"bytes"
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	anyValue = "Value is what the owner publishes: any bytes."
	anyNote  = "Note is what candidates tell each other beside the value: valid UTF-8, opaque to the store."
	tooLarge = "Create returns ErrInvalid if this store does not take the name, value or TTL. " + invalid
)

var valueCases = []Case{
	{Name: "any bytes can be a value", Clause: anyValue, check: anyBytesCanBeAValue},
	{Name: "a value may look like a record", Clause: anyValue, check: aValueMayLookLikeARecord},
	{Name: "a value that is too large is refused whole", Clause: tooLarge, check: aValueThatIsTooLargeIsRefusedWhole},
	{Name: "any text can be a note", Clause: anyNote, check: anyTextCanBeANote},
	{Name: "a note that is no text is refused or kept", Clause: anyNote + " " + invalid, check: aNoteThatIsNoTextIsRefusedOrKept},
	{Name: "a note that is too large is refused whole", Clause: tooLarge, check: aNoteThatIsTooLargeIsRefusedWhole},
}

var signatureCases = []Case{
	{
		Name:   "any string can be a signature",
		Clause: "Signature is opaque to the store.",
		check:  anyStringCanBeASignature,
	},
}

// A part is what of a record its owner publishes.
type part int

const (
	value part = iota
	note
)

// in returns where the record has that part.
func (p part) in(rec *kv.Record) *string {
	if p == note {
		return &rec.Note
	}
	return &rec.Value
}

// of returns rec with another such part.
func (p part) of(rec kv.Record, text string) kv.Record {
	*p.in(&rec) = text
	return rec
}

func anyBytesCanBeAValue(t *trial) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	t.carries(value, []string{
		"", " ", "0", "null", "v", "héllo 世界 🗝", "line\nbreak\r\n", "\x00", "a\x00b", "\xff\xfe", "\ufffd", "\xed\xa0\x80",
		"<b>&amp;</b>\u2028", string(every), strings.Repeat("x", 64<<10), string(bytes.Repeat(every, 256)),
	})
}

func aValueMayLookLikeARecord(t *trial) {
	other := t.signed("inner")
	other.Token, other.Revision = 1, 1
	t.carries(value, []string{
		kv.Encode(other), kv.Encode(kv.Record{Signature: "s", Value: kv.Encode(other), TTL: 1}),
		"{}", "[]", `""`, `{"election":1}`, `{"election":2,"signature":"s","ttl_ms":1}`,
		`","signature":"stolen","value":"`, `{"value":"`, `"}`, `\`, `\u0000`,
	})
}

func anyTextCanBeANote(t *trial) {
	other := t.signed("inner")
	other.Note = `{"rank":1}`
	t.carries(note, []string{
		"", " ", "0", "null", "note", `{"rank":7,"heirs":["a","b"]}`, "héllo 世界 🗝", "line\nbreak\r\n", "\x00", "a\x00b", "\ufffd",
		"<b>&amp;</b>\u2028", kv.Encode(other), `","token":9,"note":"`, `"}`, `'\`, `\u0000`, strings.Repeat("x", 64<<10),
	})
}

// carries requires that a safe keeps each text as it is in that part of a
// record, from a create and from a swap, and that a watch yields it so.
func (t *trial) carries(p part, texts []string) {
	t.Helper()
	published := t.name()
	last := t.create(t.s, published, p.of(t.signed("v"), "before"))
	w := t.watch(t.open(), published)
	w.sees(last)
	for _, text := range texts {
		name := t.name()
		rec := t.create(t.s, name, p.of(t.signed("v"), text))
		t.carried(p, rec, text)
		t.holds(name, rec)
		rec = t.refresh(t.s, name, rec)
		t.carried(p, rec, text)
		last = t.swap(t.s, published, last, p.of(last, text))
		t.carried(p, last, text)
		t.holds(published, last)
		w.sees(last)
		t.carried(p, t.refresh(t.s, published, last), text)
		t.delete(t.s, name, rec)
		t.vacant(name)
	}
}

func (t *trial) carried(p part, rec kv.Record, text string) {
	t.Helper()
	if got := *p.in(&rec); got != text {
		require.FailNow(t, "the text has changed", "want %.200q\ngot  %.200q", text, got)
	}
}

// A store that refuses it refuses every write of it, and is left as it was.
func aNoteThatIsNoTextIsRefusedOrKept(t *trial) {
	for _, odd := range []string{"\xff", "a\xffb", "\xed\xa0\x80"} {
		name, rec := t.name(), note.of(t.signed("v"), odd)
		got, err := t.s.Create(t.ctx, name, rec)
		if errors.Is(err, kv.ErrInvalid) {
			t.vacant(name)
			got = t.create(t.s, name, note.of(rec, "text"))
			for _, next := range []kv.Record{note.of(got, odd), note.of(t.signed("v"), odd)} {
				_, err = t.s.Swap(t.ctx, name, got, next)
				require.ErrorIs(t, err, kv.ErrInvalid, "swap of a note that create refuses")
			}
		} else {
			require.NoError(t, err)
			t.carried(note, got, odd)
		}
		t.holds(name, got)
	}
}

func aValueThatIsTooLargeIsRefusedWhole(t *trial) {
	t.keepsOrRefuses(value, 256<<10, 512<<10, 1<<20, 2<<20, 5<<20)
}

func aNoteThatIsTooLargeIsRefusedWhole(t *trial) { t.keepsOrRefuses(note, 256<<10, 2<<20) }

// keepsOrRefuses requires that texts of these sizes in that part of a record come
// back as they are, or are refused and change nothing.
func (t *trial) keepsOrRefuses(p part, sizes ...int) {
	t.Helper()
	published := t.name()
	last := t.create(t.s, published, t.signed("small"))
	for _, size := range sizes {
		large := strings.Repeat("x", size)
		name := t.name()
		rec, err := t.s.Create(t.ctx, name, p.of(t.signed("v"), large))
		if errors.Is(err, kv.ErrInvalid) {
			t.vacant(name)
		} else {
			require.NoError(t, err, "create with %d bytes", size)
			require.True(t, *p.in(&rec) == large, "what was stored is another")
			require.True(t, t.get(t.s, name) == rec, "what was read is another")
			t.delete(t.s, name, rec)
		}
		got, err := t.s.Swap(t.ctx, published, last, p.of(last, large))
		if errors.Is(err, kv.ErrInvalid) {
			require.True(t, t.get(t.s, published) == last, "a refused publication changed the record")
		} else {
			require.NoError(t, err, "publish %d bytes", size)
			require.True(t, t.get(t.s, published) == got, "what was read is another")
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
