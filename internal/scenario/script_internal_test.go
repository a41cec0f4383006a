package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAScriptIsReadLineByLine(t *testing.T) {
	s, err := parseScript(`
# All commands that there are, once.
succession list # a comment
ttl 5s
stability 1m
candidate a rank 2 heirs b,c drains 3s maxterm 1m30s
candidate b
  advance   1s
until a leads 20s
kill a
restart a
cut a
heal a
pause a
continue a
sick a
well a
heirs a b,c
transfer a to nobody
request transfer to nobody
request resign
resign a
stop a
`)
	require.NoError(t, err)
	require.Equal(t, "list", s.order)
	require.Equal(t, 5*time.Second, s.ttl)
	require.Equal(t, time.Minute, s.stability)
	require.Equal(t, []string{"a", "b"}, s.cast)
	used := map[string]bool{}
	for _, st := range s.steps {
		used[st.verb.usage] = true
	}
	for name, v := range verbs() {
		require.Truef(t, used[v.usage], "%s has no line above", name)
	}
	require.Equal(t, args{id: "a", rank: 2, ids: []string{"b", "c"}, drains: 3 * time.Second, max: 90 * time.Second}, s.steps[3].args)
	require.Equal(t, 6, s.steps[3].line)
	require.Equal(t, "advance 1s", s.steps[5].text)
	require.Equal(t, args{id: "a", to: "nobody"}, s.steps[16].args)
	require.Equal(t, args{to: "nobody"}, s.steps[17].args)
	require.Equal(t, args{}, s.steps[18].args)
}

func TestABadScriptIsRefusedWithItsLine(t *testing.T) {
	const begin = "succession rank\ncandidate a\n"
	for _, c := range []struct{ script, says string }{
		{begin + "\nklil a", `line 4: unknown command "klil": want one of advance, candidate, continue, cut, `},
		{begin + "kill b", `line 3: kill b: no candidate "b" so far: have ["a"]: want "kill ID"`},
		{begin + "kill", `line 3: kill: no ID is given: want "kill ID"`},
		{begin + "kill a now", `line 3: kill a now: nothing is known of "now": want "kill ID"`},
		{begin + "advance 5", `line 3: advance 5: "5" is no time that passes, such as 1m30s: want "advance D"`},
		{begin + "advance -5s", `"-5s" is no time that passes`},
		{begin + "transfer a b", `line 3: transfer a b: "b" is not "to": want "transfer ID to TO"`},
		{begin + "transfer a to", `no TO is given`},
		{begin + "until a is 5s", `"is" is not "leads"`},
		{begin + "request", `no transfer is given: want "request resign | request transfer to TO"`},
		{begin + "request transfer b", `"b" is not "to"`},
		{begin + "candidate a", `line 3: candidate a: a stands already: use restart`},
		{begin + "candidate b rank high", `line 3: candidate b rank high: rank "high" is no whole number: want "candidate NAME [rank N]`},
		{begin + "candidate b rank", `nothing is known of "rank"`},
		{begin + "candidate b size 3", `nothing is known of "size"`},
		{begin + "candidate b drains soon", `"soon" is no time that passes`},
		{begin + "ttl 5s", `line 3: ttl 5s: candidates stand already: say it before the first`},
		{begin + "stability 5s", `candidates stand already`},
		{begin + "succession ring", `line 3: succession ring: it is rank already`},
		{"succession bully", `line 1: succession bully: no order "bully": have ["first" "list" "rank" "ring"]`},
		{"candidate a", `line 1: candidate a: no succession so far: say "succession rank"`},
		{"# nothing\n", `nobody stands: want a line such as "candidate a"`},
	} {
		_, err := parseScript(c.script)
		require.ErrorContains(t, err, c.says)
	}
}
