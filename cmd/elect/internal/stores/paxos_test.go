package stores_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
)

// certified returns parameters that name certificates for this host.
func certified(t *testing.T) string {
	t.Helper()
	cert, key, ca := testenv.NewAuthority(t).Files("127.0.0.1")
	return "cert=" + cert + "&key=" + key + "&cacert=" + ca
}

// status returns how a store sees the members.
func status(s *stores.Store) paxoskv.Status { return s.KV.(*paxoskv.Store).Status() }

func TestAPaxosURLSaysWhoTheMembersAre(t *testing.T) {
	own, dir, tls := testenv.FreeAddr(t), filepath.Join(t.TempDir(), "m"), certified(t)
	raw := "paxos://" + own + "?peers=127.0.0.1:1,127.0.0.1:2&cluster=x&max-ttl=30s&round=2s&drift=7&dir=" + dir + "&founding=true&" + tls
	a, err := stores.Parse(raw, nothing)
	require.NoError(t, err)
	require.Equal(t, "paxos://"+own, a.String())

	member, err := a.Join(t.Context(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	st := status(member)
	require.Len(t, st.Members, 3)
	require.Equal(t, 2, st.Majority)
	require.Equal(t, 30*time.Second, st.MaxTTL)
	require.Equal(t, 2*time.Second, st.Round)
	require.Equal(t, 7, st.Drift)
	require.True(t, st.Durable)
	require.False(t, st.Client)
	require.Zero(t, st.Quarantine, "founding")
	require.True(t, member.Member())
	require.Contains(t, member.OtherTTLs(), "max-ttl")

	// While it runs, and at the same host, a command asks the members as a client.
	client, err := a.Open()
	require.NoError(t, err)
	require.True(t, status(client).Client)
	require.False(t, client.Member())
	require.Len(t, status(client).Members, 3)
	require.NoError(t, client.Close())
	require.NoError(t, member.Close())

	again, err := a.Join(t.Context(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Positive(t, status(again).Quarantine, "it was founded before")
	require.NoError(t, again.Close())
}

func TestAPaxosURLTakesItsCertificatesFromTheEnvironmentToo(t *testing.T) {
	cert, key, ca := testenv.NewAuthority(t).Files("127.0.0.1")
	env := map[string]string{"ELECT_CERT": cert, "ELECT_KEY": key, "ELECT_CACERT": ca}
	a, err := stores.Parse("paxos://?peers=127.0.0.1:1&cluster=x", func(name string) string { return env[name] })
	require.NoError(t, err)
	store, err := a.Join(t.Context(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, status(store).Client, "no host")
	require.NoError(t, store.Close())
}

func TestAMemberWhoseCertificateIsNotForItsHostDoesNotStart(t *testing.T) {
	a, err := stores.Parse("paxos://localhost:1?peers=a:1,b:1&cluster=x&"+certified(t), nothing)
	require.NoError(t, err)
	_, err = a.Join(t.Context(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "it needs the host of the member's address as a subject alternative name")
}

func TestAMemberWhoseFilesAreMissingDoesNotStart(t *testing.T) {
	_, _, ca := testenv.NewAuthority(t).Files()
	a, err := stores.Parse("paxos://a:1?peers=a:1&cluster=x&cert=/nothing&cacert="+ca, nothing)
	require.NoError(t, err)
	_, err = a.Join(t.Context(), slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "paxos://a:1: start: paxoskv: certificate: open /nothing: no such file or directory")
}

// Before the store is opened, since that may fail with such a certificate.
func TestAHostsOwnCertificateIsExamined(t *testing.T) {
	authority := testenv.NewAuthority(t)
	cert, key, ca := authority.Files("127.0.0.1")
	_, otherKey, otherCA := testenv.NewAuthority(t).Files()
	old := func(left time.Duration) string { // it began an hour ago
		path := filepath.Join(t.TempDir(), "elect.pem")
		require.NoError(t, os.WriteFile(path, authority.Pair(time.Now().Add(left), "127.0.0.1"), 0o600))
		return path
	}
	const member, client = "paxos://127.0.0.1:1?peers=127.0.0.1:1&cluster=x", "paxos://?peers=127.0.0.1:1&cluster=x"
	for name, test := range map[string]struct {
		url   string
		level stores.Level
		found string
	}{
		"good":                    {member + "&cert=" + cert + "&key=" + key + "&cacert=" + ca, stores.OK, "it is good for 2"},
		"key in the same file":    {member + "&cert=" + old(31*time.Minute) + "&cacert=" + ca, stores.OK, "it is good for 3"},
		"soon over":               {member + "&cert=" + old(29*time.Minute) + "&cacert=" + ca, stores.Warn, ", and two thirds of its life are over"},
		"over":                    {member + "&cert=" + old(-time.Minute) + "&cacert=" + ca, stores.Fail, "certificate has expired"},
		"another host's":          {strings.ReplaceAll(member, "127.0.0.1", "127.0.0.2") + "&cert=" + cert + "&key=" + key + "&cacert=" + ca, stores.Fail, "subject alternative name"},
		"any host's, of a client": {client + "&cert=" + cert + "&key=" + key + "&cacert=" + ca, stores.OK, "it is good for"},
		"another key":             {member + "&cert=" + cert + "&key=" + otherKey + "&cacert=" + ca, stores.Fail, "private key does not match"},
		"another authority's":     {member + "&cert=" + cert + "&key=" + key + "&cacert=" + otherCA, stores.Fail, "signed by the given authority"},
		"no file":                 {member + "&cert=/nothing&key=" + key + "&cacert=" + ca, stores.Fail, "open /nothing: no such file"},
	} {
		a, err := stores.Parse(test.url, nothing)
		require.NoError(t, err, name)
		findings := a.Examine()
		require.Len(t, findings, 1, name)
		require.Equal(t, test.level, findings[0].Level, "%s: %s", name, findings[0].Found)
		require.Contains(t, findings[0].Found, test.found, name)
		require.Equal(t, test.level == stores.OK, findings[0].Advice == "", name)
	}
	a, err := stores.Parse("mem:", nothing)
	require.NoError(t, err)
	require.Empty(t, a.Examine())
}

func TestParseRefusesPaxosURLsThatCannotWork(t *testing.T) {
	tls := certified(t)
	for raw, want := range map[string]string{
		"paxos://a:1,b:1?peers=a:1&cluster=x":                                    "several hosts; the host is this member's own address",
		"paxos://u@a:1?peers=a:1&cluster=x":                                      "members have certificates",
		"paxos://a:1/p?peers=a:1&cluster=x":                                      "a path; another cluster has another name",
		"paxos://a:1?cluster=x":                                                  "no peers",
		"paxos://a:1?peers=a:1":                                                  "no cluster",
		"paxos://a:1?peers=a:1&cluster=x":                                        "elect peers init makes them",
		"paxos://d:1?peers=a:1,b:1,c:1&cluster=x":                                "this member's own address, d:1, is not among the 3 peers",
		"paxos://a:1?peers=a:1&cluster=x&founding=true":                          "founding=true without dir=DIRECTORY",
		"paxos://a:1?peers=a:1&cluster=x&founding=x":                             `parameter "founding" is neither true nor false`,
		"paxos://a:1?peers=a:1&cluster=x&max-ttl=1":                              `parameter "max-ttl" is not a duration`,
		"paxos://a:1?peers=a:1&cluster=x&round=0s":                               `parameter "round" is not a duration`,
		"paxos://a:1?peers=a:1&cluster=x&drift=0":                                "number of thousandths",
		"paxos://a:1?peers=a:1&cluster=x&plain=true":                             "unknown parameter",
		"paxos://a:1?peers=a:1&cluster=x&cert=/nothing":                          "elect peers init makes them",
		"paxos://a:1?peers=a:1&cluster=x&insecure-skip-verify=true&" + tls:       "unknown parameter",
		"paxos://a:1?peers=a:1&cluster=x&" + tls[:strings.Index(tls, "&cacert")]: "elect peers init makes them",
	} {
		_, err := stores.Parse(raw, nothing)
		require.ErrorContains(t, err, want, raw)
		require.ErrorContains(t, err, "store paxos:...: ", raw)
	}
}
