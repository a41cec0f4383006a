package kv_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestTheTextFormIsWhatAnOperatorReads(t *testing.T) {
	require.Equal(t,
		`{"election":1,"signature":"host-7","value":"10.0.0.7:80","ttl_ms":1500,"token":3,"revision":9}`,
		kv.Encode(kv.Record{Signature: "host-7", Value: "10.0.0.7:80", TTL: 1500 * time.Millisecond, Token: 3, Revision: 9}))
	require.Equal(t,
		`{"election":1,"signature":"host-7","value":"10.0.0.7:80","note":"{\"rank\":7}","ttl_ms":1500}`,
		kv.Encode(kv.Record{Signature: "host-7", Value: "10.0.0.7:80", Note: `{"rank":7}`, TTL: 1500 * time.Millisecond}))
	require.Equal(t,
		`{"election":1,"signature":"host-7","ttl_ms":1}`,
		kv.Encode(kv.Record{Signature: "host-7", TTL: time.Nanosecond}), "what is zero is left out, the TTL rounded up")
	require.Equal(t,
		`{"election":1,"signature":"host-7","binary":"/wA=","ttl_ms":1000}`,
		kv.Encode(kv.Record{Signature: "host-7", Value: "\xff\x00", TTL: time.Second}), "a value that is no text")
}

func TestATextFormHasNoTraceOfTheStore(t *testing.T) {
	rec := kv.Record{Signature: "s", Value: "v", TTL: time.Second}
	kept := rec
	kept.Lease, kept.Permanent, kept.Foreign = "lease", true, true
	require.Equal(t, kv.Encode(rec), kv.Encode(kept))
}

func TestARecordComesBackFromItsTextForm(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, value := range []string{
		"", "v", " ", "\x00", "\xff", "\xed\xa0\x80", "\ufffd", "null", "<&>\u2028", `"}{\`, "ключ 🗝",
		string(every), strings.Repeat("x", 64<<10), `{"election":1,"signature":"s","ttl_ms":1}`,
	} {
		for _, rec := range []kv.Record{
			{Signature: "s", Value: value, TTL: time.Millisecond},
			{Signature: `"ключ"\`, Value: value, TTL: 90 * time.Minute, Token: 1<<64 - 1, Revision: 1<<64 - 1},
		} {
			require.Equal(t, rec, kv.Decode(kv.Encode(rec)), "value %.20q", value)
		}
	}
}

func TestANoteComesBackFromItsTextForm(t *testing.T) {
	for _, note := range []string{
		"", "note", " ", "\x00", "\ufffd", "null", "<&>\u2028", `"}{\`, "ключ 🗝", strings.Repeat("x", 64<<10),
		`{"rank":7,"heirs":["a","b"]}`, `{"election":1,"signature":"s","ttl_ms":1}`, `","token":9,"note":"`,
	} {
		for _, value := range []string{"", "v", note, "\xff"} {
			rec := kv.Record{Signature: "s", Value: value, Note: note, TTL: time.Second, Token: 7}
			require.Equal(t, rec, kv.Decode(kv.Encode(rec)), "note %.20q, value %.20q", note, value)
		}
	}
}

// What wrote it knew of no notes. The other way round, what knows of none leaves
// out what it does not know, as it does any other field.
func TestATextFormOfAnEarlierVersionHasNoNote(t *testing.T) {
	rec := kv.Record{Signature: "s", Value: "v", TTL: time.Second, Token: 3}
	const earlier = `{"election":1,"signature":"s","value":"v","ttl_ms":1000,"token":3}`
	require.Equal(t, rec, kv.Decode(earlier))
	require.Equal(t, earlier, kv.Encode(rec))
	require.Equal(t, rec, kv.Decode(`{"election":1,"signature":"s","value":"v","unknown":"n","ttl_ms":1000,"token":3}`))
}

func TestAnythingElseIsForeign(t *testing.T) {
	for _, s := range []string{
		"", " ", "host-7", "{", "{}", "[]", "null", "1", `""`, "\x00", "\xff",
		`{"election":0,"signature":"s","ttl_ms":1}`,
		`{"election":2,"signature":"s","ttl_ms":1}`,
		`{"election":"1","signature":"s","ttl_ms":1}`,
		`{"election":1,"ttl_ms":1}`,
		`{"election":1,"signature":"","ttl_ms":1}`,
		`{"election":1,"signature":7,"ttl_ms":1}`,
		`{"election":1,"signature":"s","note":{"rank":7},"ttl_ms":1}`,
		`{"election":1,"signature":"s"}`,
		`{"election":1,"signature":"s","ttl_ms":0}`,
		`{"election":1,"signature":"s","ttl_ms":-1}`,
		`{"election":1,"signature":"s","ttl_ms":1.5}`,
		`{"election":1,"signature":"s","ttl_ms":1e40}`,
		`{"election":1,"signature":"s","ttl_ms":9223372036854775807}`, // more than a Duration holds
		`{"election":1,"signature":"s","ttl_ms":1,"token":-1}`,
		`{"election":1,"signature":"s","ttl_ms":1,"binary":"%"}`,
		`{"election":1,"signature":"s","ttl_ms":1} trailing`,
		`{"election":1,"signature":"s","ttl_ms":1}{}`,
		`[{"election":1,"signature":"s","ttl_ms":1}]`,
	} {
		require.Equal(t, kv.Record{Value: s, Foreign: true}, kv.Decode(s), "%q", s)
	}
}

func TestAnOperatorMayIndentATextForm(t *testing.T) {
	require.Equal(t,
		kv.Record{Signature: "s", Value: "v", TTL: time.Second},
		kv.Decode("{\n  \"election\": 1,\n  \"ttl_ms\": 1000,\n  \"value\": \"v\",\n  \"signature\": \"s\"\n}\n"))
}

func FuzzARecordComesBackFromItsTextForm(f *testing.F) {
	f.Add("s", "v", "", int64(time.Second), uint64(1), uint64(2))
	f.Add("ключ", "\xff\x00", "заметка", int64(1), uint64(0), uint64(0))
	f.Add(`"`, `{"election":1}`, `{"rank":7}`, int64(1500*time.Microsecond), uint64(1<<63), uint64(1))
	f.Fuzz(func(t *testing.T, signature, value, note string, ttl int64, token, revision uint64) {
		const longest = 1<<63 - 1 - int64(time.Millisecond)
		if signature == "" || !utf8.ValidString(signature) || !utf8.ValidString(note) || ttl <= 0 || ttl > longest {
			t.Skip("no record has these")
		}
		rec := kv.Record{Signature: signature, Value: value, Note: note, TTL: time.Duration(ttl), Token: token, Revision: revision}
		s := kv.Encode(rec)
		require.True(t, utf8.ValidString(s), "the text form is text")
		got := kv.Decode(s)
		require.GreaterOrEqual(t, got.TTL, rec.TTL)
		require.Less(t, got.TTL-rec.TTL, time.Millisecond)
		require.Equal(t, s, kv.Encode(got), "the text form of what comes back")
		got.TTL = rec.TTL
		require.Equal(t, rec, got)
	})
}

func FuzzDecodeTakesWhateverIsThere(f *testing.F) {
	f.Add("")
	f.Add("{}")
	f.Add(kv.Encode(kv.Record{Signature: "s", Value: "\xff", TTL: time.Second, Token: 1, Revision: 2}))
	for version := range 4 {
		f.Add(fmt.Sprintf(`{"election":%d,"signature":"s","ttl_ms":1}`, version))
	}
	f.Fuzz(func(t *testing.T, s string) {
		rec := kv.Decode(s)
		if rec.Foreign {
			require.Equal(t, kv.Record{Value: s, Foreign: true}, rec)
			return
		}
		require.NotEmpty(t, rec.Signature)
		require.Empty(t, rec.Lease)
		require.False(t, rec.Permanent)
		require.Equal(t, rec, kv.Decode(kv.Encode(rec)), "an own record has a text form")
	})
}

func TestTheLongestTTLsSurviveTheTextForm(t *testing.T) {
	for _, ttl := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 1e6 * 1e6} {
		got := kv.Decode(kv.Encode(kv.Record{Signature: "s", TTL: ttl}))
		require.False(t, got.Foreign, ttl)
		require.InDelta(t, int64(ttl), int64(got.TTL), 1e6, ttl)
	}
}

func TestEachWayToJudgeExpiryIsForeignToTheOther(t *testing.T) {
	rec := kv.Record{Signature: "s", Value: "v", Note: "n", TTL: time.Second, Token: 3, Revision: 9}
	require.Equal(t, rec, kv.Decode(kv.Encode(rec)))
	require.Equal(t, rec, kv.DecodeObserved(kv.EncodeObserved(rec)))
	require.Equal(t, kv.Record{Value: kv.Encode(rec), Foreign: true}, kv.DecodeObserved(kv.Encode(rec)))
	require.Equal(t, kv.Record{Value: kv.EncodeObserved(rec), Foreign: true}, kv.Decode(kv.EncodeObserved(rec)))
}
