package peers_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/cmd/elect/internal/peers"
)

const year = 365 * 24 * time.Hour

// three is a plan of three hosts.
func three() peers.Plan {
	return peers.Plan{
		Cluster: "nightly", Peers: []string{"A.example:7000", "10.0.0.2:07000", "[fd00:0::1]:7000"},
		ValidFor: peers.Span(year), Files: "/etc/elect/nightly", State: "/var/lib/elect/nightly",
	}
}

// made makes a folder.
func made(t *testing.T, plan peers.Plan, now time.Time) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "deep", "folder")
	_, _, err := peers.Init(dir, plan, now)
	require.NoError(t, err)
	return dir
}

// contents returns what is in a folder, with the modes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		all[name] = info.Mode().String()
		if !d.IsDir() {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			all[name] += "\n" + string(text)
		}
		return nil
	}))
	return all
}

// leaf returns the certificate of a member or client.
func leaf(t *testing.T, dir, folder string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, folder, peers.PairFile), filepath.Join(dir, folder, peers.PairFile))
	require.NoError(t, err)
	return pair.Leaf
}

func TestAFolderHasWhatEachHostNeeds(t *testing.T) {
	now := time.Now()
	dir := made(t, three(), now)
	modes := map[string]string{}
	for name, text := range contents(t, dir) {
		modes[name], _, _ = strings.Cut(text, "\n")
	}
	want := map[string]string{".": "drwx------", "ca.key": "-rw-------", "ca.pem": "-rw-r--r--", "cluster.json": "-rw-r--r--"}
	folders := map[string]string{"a.example_7000": "a.example:7000", "10.0.0.2_7000": "10.0.0.2:7000", "fd00__1_7000": "[fd00::1]:7000"}
	for folder := range folders {
		want[folder], want[folder+"/ca.pem"], want[folder+"/elect.env"], want[folder+"/elect.pem"] = "drwx------", "-rw-r--r--", "-rw-r--r--", "-rw-------"
	}
	require.Equal(t, want, modes)

	for folder, id := range folders {
		pem := filepath.Join(dir, folder, "elect.pem")
		files := &paxoskv.Files{Cert: pem, Key: pem, CA: filepath.Join(dir, folder, "ca.pem")}
		from, until, err := files.Validity(id)
		require.NoError(t, err)
		require.WithinDuration(t, now.Add(year), until, time.Second)
		require.WithinDuration(t, now.Add(-time.Hour), from, time.Second)
		for other, otherID := range folders {
			if other != folder {
				_, _, err = files.Validity(otherID)
				require.ErrorContains(t, err, "subject alternative name", "a certificate is for one host")
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "fd00__1_7000", "elect.env"))
	require.NoError(t, err)
	require.Contains(t, string(text), `
ELECT_STORE='paxos://[fd00::1]:7000?cluster=nightly&peers=a.example:7000,10.0.0.2:7000,[fd00::1]:7000&dir=/var/lib/elect/nightly'
ELECT_CERT='/etc/elect/nightly/elect.pem'
ELECT_KEY='/etc/elect/nightly/elect.pem'
ELECT_CACERT='/etc/elect/nightly/ca.pem'
`)
}

func TestAnAuthoritySignsForNoOtherAuthority(t *testing.T) {
	now := time.Now()
	dir := made(t, three(), now)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	require.True(t, pair.Leaf.IsCA)
	require.True(t, pair.Leaf.MaxPathLenZero)
	require.WithinDuration(t, now.AddDate(10, 0, 0), pair.Leaf.NotAfter, time.Second)
	require.False(t, leaf(t, dir, "a.example_7000").IsCA)
}

func TestInitTouchesNothingThatIsThere(t *testing.T) {
	dir := made(t, three(), time.Now())
	before := contents(t, dir)
	_, _, err := peers.Init(dir, three(), time.Now())
	require.ErrorContains(t, err, dir+" has a cluster, which stays as it is: use elect peers renew or add")
	require.Equal(t, before, contents(t, dir))

	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "notes"), []byte("mine"), 0o600))
	before = contents(t, other)
	_, _, err = peers.Init(other, three(), time.Now())
	require.ErrorContains(t, err, other+" is not empty: name a new folder")
	require.Equal(t, before, contents(t, other))

	empty := t.TempDir()
	_, _, err = peers.Init(empty, three(), time.Now())
	require.NoError(t, err)
}

// Many at once: one makes the folder, and it is whole.
func TestOneOfManyInitsMakesAFolder(t *testing.T) {
	for range 40 {
		dir := filepath.Join(t.TempDir(), "folder")
		const all = 8
		errs, begin := make(chan error, all), make(chan struct{})
		for range all {
			go func() {
				<-begin
				_, _, err := peers.Init(dir, three(), time.Now())
				errs <- err
			}()
		}
		close(begin)
		made := 0
		for range all {
			if <-errs == nil {
				made++
			}
		}
		require.Equal(t, 1, made)
		folder, err := peers.Open(dir, time.Now())
		require.NoError(t, err)
		issued, err := folder.Renew(nil, false, time.Now())
		require.NoError(t, err)
		require.Empty(t, issued, "all are of one authority")
	}
}

// What cannot be made whole is not made at all.
func TestInitThatFailsLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	long := three()
	long.Peers[0] = strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("a", 61) + ":7000" // as a name of a file it is too long
	_, _, err := peers.Init(dir, long, time.Now())
	require.ErrorContains(t, err, "name too long")
	require.NoDirExists(t, dir)

	require.NoError(t, os.Mkdir(dir, 0o700))
	_, _, err = peers.Init(dir, long, time.Now())
	require.Error(t, err)
	require.Len(t, contents(t, dir), 1, "it was there before")

	_, _, err = peers.Init("/dev/null/folder", three(), time.Now())
	require.ErrorContains(t, err, "/dev/null/folder: not a directory")
}

func TestPlansThatCannotBeAreRefused(t *testing.T) {
	for want, change := range map[string]func(*peers.Plan){
		`member "a.example" has no port: write host:port`:                func(p *peers.Plan) { p.Peers = []string{"a.example"} },
		`member "fd00::1:7000": write an IPv6 address in brackets`:       func(p *peers.Plan) { p.Peers = []string{"fd00::1:7000"} },
		`member "a:0": its port is not a number`:                         func(p *peers.Plan) { p.Peers = []string{"a:0"} },
		`member "a:http": its port is not a number`:                      func(p *peers.Plan) { p.Peers = []string{"a:http"} },
		`member ":7000": the host is empty`:                              func(p *peers.Plan) { p.Peers = []string{":7000"} },
		`member "a.example.:7000": write the host without the dot`:       func(p *peers.Plan) { p.Peers = []string{"a.example.:7000"} },
		`member "10.0.0.256:1": the host is neither a name nor`:          func(p *peers.Plan) { p.Peers = []string{"10.0.0.256:1"} },
		`member "ä.example:1": the host is not a name of letters`:        func(p *peers.Plan) { p.Peers = []string{"ä.example:1"} },
		`member "a/../b:1": the host is not a name of letters`:           func(p *peers.Plan) { p.Peers = []string{"a/../b:1"} },
		`member "..:1": write the host without`:                          func(p *peers.Plan) { p.Peers = []string{"..:1"} },
		`member "a' b:1": the host is not a name of letters`:             func(p *peers.Plan) { p.Peers = []string{"a' b:1"} },
		`member "[fe80::1%eth0]:1": a certificate cannot name a zone`:    func(p *peers.Plan) { p.Peers = []string{"[fe80::1%eth0]:1"} },
		`member "0.0.0.0:1": the others cannot reach 0.0.0.0`:            func(p *peers.Plan) { p.Peers = []string{"0.0.0.0:1"} },
		`member "a:1" is named twice`:                                    func(p *peers.Plan) { p.Peers = []string{"a:1", "A:01"} },
		`member "[::1]:1" is named twice`:                                func(p *peers.Plan) { p.Peers = []string{"[::1]:1", "[0:0::1]:1"} },
		`members "a:1" and "a:2" are on one host, and would share`:       func(p *peers.Plan) { p.Peers = []string{"a:1", "a:2"} },
		"no members: name the address of each":                           func(p *peers.Plan) { p.Peers = nil },
		"16 members, where 15 are the most":                              func(p *peers.Plan) { p.Peers = strings.Fields(hosts(16)) },
		`cluster "a b": name it with up to 50 letters`:                   func(p *peers.Plan) { p.Cluster = "a b" },
		`cluster "..": name it`:                                          func(p *peers.Plan) { p.Cluster = ".." },
		"certificates that are valid for -1s: use 1s or more":            func(p *peers.Plan) { p.ValidFor = peers.Span(-time.Second) },
		`folder "etc": write its whole path`:                             func(p *peers.Plan) { p.Files = "etc" },
		"folder \"/it's\" has quotes, backslashes or control characters": func(p *peers.Plan) { p.State = "/it's" },
	} {
		plan := three()
		change(&plan)
		dir := filepath.Join(t.TempDir(), "folder")
		_, _, err := peers.Init(dir, plan, time.Now())
		require.ErrorContains(t, err, want)
		require.NoDirExists(t, dir)
	}
}

// hosts returns addresses of members.
func hosts(n int) string {
	all := ""
	for i := range n {
		all += string(rune('a'+i)) + ".example:1 "
	}
	return all
}

// The members' own limit is the same.
func TestAClusterOfTheMostMembersStarts(t *testing.T) {
	plan := three()
	plan.Peers = strings.Fields(hosts(15))
	dir := made(t, plan, time.Now())
	files := &paxoskv.Files{Cert: filepath.Join(dir, "a.example_1", "elect.pem"), CA: filepath.Join(dir, "ca.pem")}
	client, err := paxoskv.New(&paxoskv.Options{Peers: plan.Peers, Cluster: "nightly", GetTLS: files.TLS})
	require.NoError(t, err)
	require.NoError(t, client.Close())
	_, err = paxoskv.New(&paxoskv.Options{Peers: strings.Fields(hosts(16)), Cluster: "nightly", GetTLS: files.TLS})
	require.ErrorContains(t, err, "16 members, where 15 are the most")
}

func TestASensibleNumberOfMembersIsOdd(t *testing.T) {
	for n, want := range map[int]string{
		1: "one member alone decides: when it is gone, nobody is elected: use three, or five",
		2: "when one of two members is gone, nobody is elected: use three, or five",
		4: "4 members go on without 1 of them, and so do 3: the last one only adds a host that can fail; use 3 or 5",
	} {
		require.Contains(t, peers.Plan{Peers: strings.Fields(hosts(n))}.Doubt(), want)
		require.Empty(t, peers.Plan{Peers: strings.Fields(hosts(n + n%2 + 1))}.Doubt())
	}
}

func TestRenewTakesThoseThatHaveLivedTwoThirds(t *testing.T) {
	now := time.Now()
	plan := three()
	plan.Clients = []string{"laptop"}
	dir := made(t, plan, now)
	before := contents(t, dir)
	renewed := func(now time.Time, all bool, who ...string) []string {
		folder, err := peers.Open(dir, now)
		require.NoError(t, err)
		issued, err := folder.Renew(who, all, now)
		require.NoError(t, err)
		names := []string{}
		for _, i := range issued {
			names = append(names, i.Name)
		}
		return names
	}
	everybody := []string{"a.example:7000", "10.0.0.2:7000", "[fd00::1]:7000", "laptop"}
	require.Empty(t, renewed(now.Add(year*2/3-2*time.Hour), false))
	require.Equal(t, before, contents(t, dir))
	folder, err := peers.Open(dir, now)
	require.NoError(t, err)
	_, at := folder.Due()
	require.WithinDuration(t, now.Add(year*2/3), at, time.Hour)

	require.Equal(t, everybody[:1], renewed(now.Add(year/2), false, "A.example:7000"))
	late := now.Add(year*2/3 + time.Hour)
	require.Equal(t, everybody[1:], renewed(late, false))
	require.WithinDuration(t, now.Add(year/2+year), leaf(t, dir, "a.example_7000").NotAfter, time.Second)
	require.WithinDuration(t, late.Add(year), leaf(t, dir, "laptop").NotAfter, time.Second)
	require.Empty(t, renewed(late, false))
	require.Equal(t, everybody, renewed(late, true))
	after := contents(t, dir)
	for name := range before {
		require.Equal(t, filepath.Base(name) != "elect.pem", before[name] == after[name], name)
	}
	_, err = folder.Renew([]string{"d.example:7000"}, false, now)
	require.EqualError(t, err, `"d.example:7000" is not in this cluster: a.example:7000, 10.0.0.2:7000, [fd00::1]:7000, laptop are`)
}

// A member reads its files at any moment.
func TestFilesAreWholeWhileTheyAreRenewed(t *testing.T) {
	dir := made(t, three(), time.Now())
	folder, err := peers.Open(dir, time.Now())
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 200 && err == nil; i++ {
			_, err = folder.Renew([]string{"a.example:7000"}, false, time.Now())
		}
		done <- err
	}()
	at := filepath.Join(dir, "a.example_7000")
	files := &paxoskv.Files{Cert: filepath.Join(at, "elect.pem"), CA: filepath.Join(at, "ca.pem")}
	for {
		_, _, err := files.Validity("a.example:7000")
		require.NoError(t, err)
		select {
		case err := <-done:
			require.NoError(t, err)
			require.Len(t, contents(t, at), 4, "with the folder itself; nothing half made is left")
			return
		default:
		}
	}
}

// Somebody has moved a file away, not copied it, or taken one from elsewhere.
func TestRenewMakesWhatIsMissingOrWrong(t *testing.T) {
	now := time.Now()
	dir, other := made(t, three(), now), made(t, three(), now)
	for what, harm := range map[string]func() error{
		"gone":              func() error { return os.RemoveAll(filepath.Join(dir, "a.example_7000")) },
		"broken":            func() error { return os.WriteFile(filepath.Join(dir, "a.example_7000", "elect.pem"), nil, 0o600) },
		"another host's":    func() error { return replace(dir+"/a.example_7000/elect.pem", dir+"/10.0.0.2_7000/elect.pem") },
		"another authority": func() error { return replace(dir+"/a.example_7000/elect.pem", other+"/a.example_7000/elect.pem") },
	} {
		require.NoError(t, harm(), what)
		folder, err := peers.Open(dir, now)
		require.NoError(t, err)
		issued, err := folder.Renew(nil, false, now)
		require.NoError(t, err)
		require.Len(t, issued, 1, what)
		require.Equal(t, "a.example:7000", issued[0].Name)
		pem := filepath.Join(dir, "a.example_7000", "elect.pem")
		_, _, err = (&paxoskv.Files{Cert: pem, Key: pem, CA: filepath.Join(dir, "a.example_7000", "ca.pem")}).Validity("a.example:7000")
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(dir, "a.example_7000", "elect.env"))
	}
}

func replace(path, by string) error {
	text, err := os.ReadFile(by)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func TestNothingIsSignedByAnAuthorityThatDoesNotLast(t *testing.T) {
	now := time.Now()
	dir := made(t, three(), now)
	_, err := peers.Open(dir, now.AddDate(10, 0, 1))
	require.ErrorContains(t, err, "the authority expired at "+now.AddDate(10, 0, 0).UTC().Format(time.DateOnly))
	require.ErrorContains(t, err, "make another one in a new folder, with elect peers init")
	_, err = peers.Open(dir, now.Add(-2*time.Hour))
	require.ErrorContains(t, err, "this host's clock is wrong")

	late := now.AddDate(9, 6, 0)
	folder, err := peers.Open(dir, late)
	require.NoError(t, err)
	_, err = folder.Renew(nil, true, late)
	require.NoError(t, err)
	require.Equal(t, folder.Ends(), leaf(t, dir, "a.example_7000").NotAfter, "a certificate ends with its authority")
}

func TestAFolderThatIsNotWholeIsRefused(t *testing.T) {
	now := time.Now()
	other := made(t, three(), now)
	for want, harm := range map[string]func(dir string) error{
		"has no cluster.json: name the folder that elect peers init has made": func(dir string) error { return os.Remove(dir + "/cluster.json") },
		"cluster.json: invalid character":                                     func(dir string) error { return os.WriteFile(dir+"/cluster.json", []byte("x"), 0o600) },
		"cluster.json: no members":                                            func(dir string) error { return os.WriteFile(dir+"/cluster.json", []byte(`{"cluster":"x"}`), 0o600) },
		"ca.key: no such file":                                                func(dir string) error { return os.Remove(dir + "/ca.key") },
		"private key does not match":                                          func(dir string) error { return replace(dir+"/ca.key", other+"/ca.key") },
		"it is the certificate of a member": func(dir string) error {
			return errors.Join(replace(dir+"/ca.key", dir+"/a.example_7000/elect.pem"), replace(dir+"/ca.pem", dir+"/a.example_7000/elect.pem"))
		},
	} {
		dir := made(t, three(), now)
		require.NoError(t, harm(dir), want)
		_, err := peers.Open(dir, now)
		require.ErrorContains(t, err, want)
	}
	_, err := peers.Open("", now)
	require.EqualError(t, err, "the name of the folder is empty")
}

func TestMembersAndClientsAreAdded(t *testing.T) {
	now := time.Now()
	plan := three()
	plan.Parameters = "founding=true&max-ttl=30s&listen=0.0.0.0:7000"
	dir := made(t, plan, now)
	folder, err := peers.Open(dir, now)
	require.NoError(t, err)
	pems, before := leaf(t, dir, "a.example_7000").Raw, contents(t, dir)
	issued, edited, err := folder.Add(nil, []string{"laptop"}, now)
	require.NoError(t, err)
	require.Empty(t, edited)
	require.Equal(t, []peers.Issue{{Name: "laptop", Folder: filepath.Join(dir, "laptop"), Target: "laptop:/etc/elect/nightly"}}, issued)
	after := contents(t, dir)
	for name := range before {
		require.Equal(t, name == "cluster.json", before[name] != after[name], name)
	}
	laptop := leaf(t, dir, "laptop")
	require.Empty(t, laptop.DNSNames, "it is good for no host")
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, laptop.ExtKeyUsage)
	require.Contains(t, after["laptop/elect.env"], "\nELECT_STORE='paxos://?cluster=nightly&peers=a.example:7000,10.0.0.2:7000,[fd00::1]:7000&max-ttl=30s'\n")

	mine := filepath.Join(dir, "10.0.0.2_7000", "elect.env")
	require.NoError(t, os.WriteFile(mine, []byte("ELECT_STORE=mine\n"), 0o600))
	issued, edited, err = folder.Add([]string{"d.example:7000", "E.example:7000"}, nil, now)
	require.NoError(t, err)
	require.Equal(t, []string{mine}, edited)
	require.Len(t, issued, 2)
	others := []string{}
	for _, i := range folder.Others(issued) {
		others = append(others, i.Name)
	}
	require.Equal(t, []string{"a.example:7000", "10.0.0.2:7000", "[fd00::1]:7000", "laptop"}, others)
	all := contents(t, dir)
	const list = "peers=a.example:7000,10.0.0.2:7000,[fd00::1]:7000,d.example:7000,e.example:7000&"
	for _, who := range []string{"a.example_7000", "e.example_7000", "laptop"} {
		require.Contains(t, all[who+"/elect.env"], list)
		require.NotContains(t, all[who+"/elect.env"], "founding", "that was for the first start")
	}
	require.Contains(t, all["10.0.0.2_7000/elect.env"], "\nELECT_STORE=mine\n")
	require.Equal(t, pems, leaf(t, dir, "a.example_7000").Raw)

	again, err := peers.Open(dir, now)
	require.NoError(t, err)
	require.Equal(t, folder.Plan, again.Plan)
	for want, add := range map[string][2][]string{
		`"d.example:7000" is named twice`:                  {{"D.example:7000"}},
		`client "laptop" is named twice`:                   {nil, {"laptop"}},
		`client "a b": name it with`:                       {nil, {"a b"}},
		`client "a.example_7000" has the name of a member`: {nil, {"a.example_7000"}},
	} {
		_, _, err := again.Add(add[0], add[1], now)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "pc"), 0o700))
	_, _, err = again.Add(nil, []string{"pc"}, now)
	require.ErrorContains(t, err, filepath.Join(dir, "pc")+" is there already: move it away")
	require.Equal(t, all["cluster.json"], contents(t, dir)["cluster.json"])
}

func TestCertificatesLastAsLongAsIsSaid(t *testing.T) {
	now := time.Now()
	plan := three()
	plan.ValidFor = peers.Span(time.Minute)
	dir := made(t, plan, now)
	first := leaf(t, dir, "a.example_7000")
	require.WithinDuration(t, now.Add(time.Minute), first.NotAfter, time.Second)
	require.WithinDuration(t, now.Add(-6*time.Second), first.NotBefore, time.Second, "a tenth, not an hour")
	folder, err := peers.Open(dir, now)
	require.NoError(t, err)
	require.Error(t, folder.SetValidFor(0))
	require.NoError(t, folder.SetValidFor(48*time.Hour))
	var kept struct {
		ValidFor string `json:"valid_for"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "cluster.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &kept))
	require.Equal(t, "48h0m0s", kept.ValidFor)
}
