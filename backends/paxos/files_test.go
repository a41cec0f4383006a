package paxoskv_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/testenv"
)

// A folder has a member's files.
type folder struct {
	*testing.T
	path string
}

func (f folder) file(name string) string { return filepath.Join(f.path, name) }

func (f folder) put(name string, texts ...[]byte) {
	f.Helper()
	require.NoError(f, os.WriteFile(f.file(name), bytes.Join(texts, nil), 0o600))
}

// texts returns a certificate, its key, and the authority.
func texts(t *testing.T, a *testenv.Authority, hosts ...string) (cert, key, ca []byte) {
	t.Helper()
	all := [][]byte{}
	for _, path := range slices.Collect(func(yield func(string) bool) {
		cert, key, ca := a.Files(hosts...)
		_ = yield(cert) && yield(key) && yield(ca)
	}) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all = append(all, text)
	}
	return all[0], all[1], all[2]
}

func TestFilesAreReadAgainWhenTheyHaveChanged(t *testing.T) {
	f := folder{t, t.TempDir()}
	a, b := testenv.NewAuthority(t), testenv.NewAuthority(t)
	cert, key, ca := texts(t, a, "127.0.0.1")
	newCert, newKey, newCA := texts(t, b, "127.0.0.1")
	f.put("cert", cert)
	f.put("key", key)
	f.put("ca", ca)
	files := &paxoskv.Files{Cert: f.file("cert"), Key: f.file("key"), CA: f.file("ca")}
	first, err := files.TLS()
	require.NoError(t, err)
	same, err := files.TLS()
	require.NoError(t, err)
	require.Same(t, first, same)

	f.put("cert", newCert) // and the key is still the old one
	_, err = files.TLS()
	require.ErrorContains(t, err, "certificate "+files.Cert+" with key "+files.Key+": ")
	_, _, err = files.Validity("127.0.0.1:1")
	require.ErrorContains(t, err, "paxoskv: certificate "+files.Cert)

	f.put("key", newKey)
	second, err := files.TLS()
	require.NoError(t, err)
	require.NotEqual(t, first.Certificates, second.Certificates)
	_, _, err = files.Validity("127.0.0.1:1")
	require.ErrorContains(t, err, "it must be signed by the given authority")

	f.put("ca", ca, newCA)
	both, err := files.TLS()
	require.NoError(t, err)
	require.True(t, both.RootCAs.Equal(testenv.Pool(a, b)))
	_, until, err := files.Validity("127.0.0.1:1")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), until, time.Minute)

	_, _, err = files.Validity("127.0.0.2:1")
	require.ErrorContains(t, err, "it needs the host of the member's address as a subject alternative name")
	_, _, err = files.Validity("")
	require.NoError(t, err, "a client has no host")
	_, _, err = files.Validity("here")
	require.ErrorContains(t, err, "is not host:port")

	require.NoError(t, os.Remove(files.CA))
	_, err = files.TLS()
	require.ErrorContains(t, err, "authority: open "+files.CA)
}

// A copy is under way. Where the file ends, nothing else is taken for it.
func TestAFileThatIsHalfWrittenIsAnError(t *testing.T) {
	f := folder{t, t.TempDir()}
	a, b := testenv.NewAuthority(t), testenv.NewAuthority(t)
	cert, key, ca := texts(t, a, "127.0.0.1")
	_, _, other := texts(t, b)
	remark := []byte("The next one:\n")
	member, authorities := slices.Concat(key, cert), slices.Concat(ca, remark, other)
	files := &paxoskv.Files{Cert: f.file("member"), Key: f.file("member"), CA: f.file("ca")}
	for _, cut := range []struct {
		name  string
		whole []byte
		first int // where it is whole enough, and
		last  int
	}{
		{"member", member, len(member) - 1, len(member)},
		{"ca", authorities, len(ca) - 1, len(ca) + len(remark)},
	} {
		f.put("member", member)
		f.put("ca", authorities)
		for n := range len(cut.whole) {
			f.put(cut.name, cut.whole[:n])
			_, err := files.TLS()
			if cut.first <= n && n <= cut.last || n == len(cut.whole)-1 {
				require.NoError(t, err, "%s: %d of %d bytes", cut.name, n, len(cut.whole))
				continue
			}
			require.Error(t, err, "%s: %d of %d bytes", cut.name, n, len(cut.whole))
			require.NotContains(t, err.Error(), string(key[40:60]))
		}
	}
}

func TestMembersTakeNewFiles(t *testing.T) {
	f := folder{t, t.TempDir()}
	a := testenv.NewAuthority(t)
	cert, key, ca := texts(t, a, "127.0.0.1")
	f.put("member", key, cert)
	f.put("ca", ca)
	files := &paxoskv.Files{Cert: f.file("member"), CA: f.file("ca")}
	member, err := paxoskv.New(&paxoskv.Options{ID: testenv.FreeAddr(t), Cluster: "c", GetTLS: files.TLS})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, member.Close()) })
	shows := func() []byte {
		client, err := paxoskv.New(&paxoskv.Options{Peers: []string{member.Status().Members[0].ID}, Cluster: "c", TLS: a.Config()})
		require.NoError(t, err)
		defer client.Close()
		require.Eventually(t, func() bool { return client.Status().Connected() == 1 }, 20*time.Second, time.Millisecond)
		return client.Status().Members[0].Certificate.Raw
	}
	before := shows()
	require.Equal(t, before, shows())
	cert, key, _ = texts(t, a, "127.0.0.1")
	f.put("member", key, cert)
	after := shows()
	require.NotEqual(t, before, after)
	f.put("member", key)
	require.Equal(t, after, shows(), "half of it is not there")
}
