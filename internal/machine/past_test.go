package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election/internal/machine"
)

// pasts draws what an election may have seen.
func pasts(t *rapid.T) (p machine.Past) {
	token, now := uint64(0), int64(1_700_000_000_000)
	for range rapid.IntRange(0, 80).Draw(t, "terms") {
		token += rapid.Uint64Range(1, 1<<20).Draw(t, "token")
		began := now + 100*rapid.Int64Range(-100, 1e6).Draw(t, "gap")
		now = began + 100*rapid.Int64Range(0, 1e7).Draw(t, "lasted")
		p = append(p, machine.PastTerm{
			ID: rapid.SampledFrom([]string{"a", "b,c", "d;e:f", "ü/\"", "+"}).Draw(t, "id"), Token: token, Began: began, Ended: now,
			Why: rapid.SampledFrom([]byte("agz")).Draw(t, "why"), HandedOver: rapid.Bool().Draw(t, "handed over"),
		})
	}
	return p
}

func TestAPastIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pasts(t)
		text := p.Text()
		require.LessOrEqual(t, len(text), 768)
		got := machine.PastOf(text)
		require.LessOrEqual(t, len(got), len(p))
		require.Equal(t, append(machine.Past(nil), p[len(p)-len(got):]...), got, "the newest")
		if len(p) > 0 {
			require.NotEmpty(t, got)
		}
		require.Equal(t, text, got.Text())
	})
}

func TestSixtyFourOrdinaryTermsFit(t *testing.T) {
	var p machine.Past
	for i := range 100 {
		began := 1_700_000_000_000 + int64(i)*3_600_000
		p = append(p, machine.PastTerm{
			ID: fmt.Sprintf("web-%d-31337", i%3), Token: uint64(10 * (i + 1)), Began: began, Ended: began + 3_599_700, Why: 's', HandedOver: true, //nolint:gosec // small
		})
	}
	require.Len(t, machine.PastOf(p.Text()), 64)
}

func TestAPastThatMakesNoSenseIsNone(t *testing.T) {
	for _, text := range []string{
		"", ":", "a", "a:", "a:G", "a:0,1,0,0", "a:1,1,0,0G", "a:-1,1,0,0G", "a:0,0,0,0G", "a:0,1,0,-1G", "a:0,1,0G", "a:0,1,0,0,0G",
		"a:0,1,x y,0G", "%zz:0,1,0,0G", "a:0,1,0,0G;", "a:0,1,0,0G++", "a:" + strings.Repeat("0,1,0,0G", 65), "a:" + strings.Repeat("0,1,0,0G", 2000),
	} {
		require.Empty(t, machine.PastOf(text), "%.40q", text)
	}
	require.Len(t, machine.PastOf("a:0,1,0,0G+"), 1)
}

func FuzzPastOf(f *testing.F) {
	f.Add("a,b:0,1,0,0G1,1,-1,2sS+")
	f.Fuzz(func(t *testing.T, text string) {
		p := machine.PastOf(text)
		require.LessOrEqual(t, len(p), 64)
		for i := range p {
			require.NotZero(t, p[i].Token)
		}
	})
}

func TestPastsAreMergedByTokenAndKeepWhatSaysMore(t *testing.T) {
	gone := machine.PastTerm{ID: "a", Token: 2, Began: 100, Ended: 300, Why: machine.Gone}
	told := machine.PastTerm{ID: "a", Token: 2, Began: 100, Ended: 200, Why: 's', HandedOver: true}
	first, last := machine.PastTerm{ID: "b", Token: 1, Why: machine.Gone}, machine.PastTerm{ID: "c", Token: 3, Why: machine.Gone}
	require.Equal(t, machine.Past{first, told, last}, machine.Past{gone, last}.Merge(machine.Past{first, told}))
	require.Equal(t, machine.Past{first, told, last}, machine.Past{first, told}.Merge(machine.Past{gone, last}))
	require.Equal(t, machine.Past{first}, machine.Past{first, told, last}.Before(2))
}
