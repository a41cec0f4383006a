package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAMistakeInAFlagIsExplained(t *testing.T) {
	for arg, text := range map[string]string{
		"-store=zookeeper":   "-store=zookeeper: there is none of that name: it is one of etcd; consul; redis; mem",
		"-work=dance":        "-work=dance: there is none of that name",
		"-contender=nobody":  "-contender=nobody: there is none of that name",
		"-candidates=2,many": `"many" is not a whole number`,
		"-candidates=1":      "a handover needs at least 2",
		"-elections=0":       "-elections=0: at least 1",
		"-repeat=0":          "-repeat=0: at least 1",
		"-ttl=1s":            "-ttl=1s: whole seconds, and at least 2s",
		"-ttl=2500ms":        "-ttl=2.5s: whole seconds",
		"handover":           `argument "handover" is not a flag`,
	} {
		_, err := parse([]string{arg}, io.Discard)
		require.ErrorContains(t, err, text, arg)
	}
}

func TestFlagsWinOverQuick(t *testing.T) {
	o, err := parse([]string{"-store=etcd,redis", "-quick", "-ttl=3s", "-contender=election, NoHeir"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"etcd", "redis"}, o.stores)
	require.Equal(t, []string{"election, NoHeir"}, o.contenders)
	require.Equal(t, 3*time.Second, o.ttl)
	require.Equal(t, quickOptions().waiters, o.waiters)
}
