//go:build linux

package main

import (
	"crypto/tls"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// A cluster is a folder of elect peers init, for members on this host.
type cluster struct {
	*testing.T
	dir    string
	addrs  []string
	client string // its folder, whose certificate lasts for an hour
	ttl    time.Duration
}

// folder returns where the files of a member are.
func (c *cluster) folder(dir, addr string) string {
	return filepath.Join(dir, strings.Replace(addr, ":", "_", 1))
}

// peers runs elect peers and returns what it prints.
func (c *cluster) peers(command string, args ...string) string {
	c.Helper()
	status, out, stderr := finish(c.T, append([]string{"peers", command}, args...)...)
	require.Zero(c, status, stderr)
	return out
}

func newCluster(t *testing.T, ttl, valid time.Duration) (c *cluster, printed string) {
	t.Helper()
	c = &cluster{T: t, dir: filepath.Join(t.TempDir(), "test"), ttl: ttl}
	for range 3 {
		c.addrs = append(c.addrs, testenv.FreeAddr(t))
	}
	args := append([]string{"--dir", c.dir, "--here", "--with", "founding=true&max-ttl=" + (2 * ttl).String(), "--valid-for", valid.String()}, c.addrs...)
	printed = c.peers("init", args...)
	c.peers("add", "--dir", c.dir, "--client", "client")
	c.peers("renew", "--dir", c.dir, "--valid-for", "1h", "client")
	c.client = filepath.Join(c.dir, "client")
	return c, printed
}

// inTime tries something with members whose certificates end soon, until this machine was fast
// enough: for them, and for the terms of the leader.
func inTime(t *testing.T, try func(c *cluster, end time.Time) (inTime bool)) {
	t.Helper()
	for ttl := 5 * time.Second; ; ttl *= 2 {
		c, _ := newCluster(t, ttl, 6*ttl)
		if try(c, c.ends(filepath.Join(c.folder(c.dir, c.addrs[0]), "elect.pem"))) {
			return
		}
		require.Less(t, ttl, 20*time.Second, "the leader has changed, or the certificates have ended")
	}
}

// as returns elect with the environment of a folder, as elect peers init says.
func (c *cluster) as(folder string, args ...string) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", `set -a; . "$0"; set +a; exec "$@"`, filepath.Join(folder, "elect.env"), elect}, args...)...)
}

// ask runs elect as the client.
func (c *cluster) ask(args ...string) (status int, out string) {
	p := startCommand(c.T, c.as(c.client, args...))
	return p.status(c.T), p.out.String()
}

// members starts them, and waits for a leader. Nobody leads if their certificates end before.
func (c *cluster) members() (all []*proc, leader string) {
	c.Helper()
	for _, addr := range c.addrs {
		all = append(all, startCommand(c.T, c.as(c.folder(c.dir, addr), "run", "--ttl", c.ttl.String(), "--grace", "100ms", "--id", addr, "job", "--", "sleep", "1000")))
	}
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		if status, row := c.leader(); status == 0 {
			return all, row
		}
	}
	return all, ""
}

// leader returns who leads, with the token.
func (c *cluster) leader() (status int, row string) {
	status, out := c.ask("status", "job")
	_, row, _ = strings.Cut(out, "\n")
	if fields := strings.Fields(row); len(fields) > 3 {
		row = strings.Join(fields[:4], " ")
	}
	return status, row
}

// ends returns when the certificate of a file ends.
func (c *cluster) ends(path string) time.Time {
	c.Helper()
	pair, err := tls.LoadX509KeyPair(path, path)
	require.NoError(c, err)
	return pair.Leaf.NotAfter
}

// ended waits until the certificates that end then are over, and what a leader could do
// without the others is too.
func (c *cluster) ended(at time.Time) { time.Sleep(time.Until(at.Add(c.ttl + 3*time.Second))) }

// put copies a file to another place, as scp does: while it is written, it is there in part.
func (c *cluster) put(from, to string) {
	c.Helper()
	text, err := os.ReadFile(from)
	require.NoError(c, err)
	f, err := os.OpenFile(to, os.O_TRUNC|os.O_WRONLY, 0)
	require.NoError(c, err)
	defer f.Close()
	for _, part := range [][]byte{text[:len(text)/2], text[len(text)/2:]} {
		_, err = f.Write(part)
		require.NoError(c, err)
		time.Sleep(10 * time.Millisecond)
	}
}

func TestALeaderLeadsOnWhenTheCertificatesOfAllAreRenewed(t *testing.T) {
	t.Parallel()
	inTime(t, func(c *cluster, end time.Time) bool {
		members, leader := c.members()
		defer kill(members)

		out := c.peers("renew", "--dir", c.dir, "--all", "--valid-for", "1h")
		require.Equal(t, 4, strings.Count(out, "copy "), out)
		if leader == "" || time.Now().After(end) {
			return false
		}
		c.ended(end)
		if _, now := c.leader(); now != leader || lost(members) {
			return false
		}
		for _, m := range members {
			require.Contains(t, m.err.String(), "certificate changed")
		}
		require.Regexp(t, `OK    certificates: the first ends in 5\dm`, c.reached())

		// One of them is spoiled, and another one is old: the members go on with what they have.
		spoiled, old := c.folder(c.dir, c.addrs[0]), c.folder(c.dir, c.addrs[1])
		require.NoError(t, os.Truncate(filepath.Join(spoiled, "elect.pem"), 300))
		c.peers("renew", "--dir", c.dir, "--valid-for", "2s", c.addrs[1])
		c.ended(c.ends(filepath.Join(old, "elect.pem")))
		if _, now := c.leader(); now != leader {
			return false
		}
		for folder, want := range map[string]string{
			spoiled: "FAIL  certificate: paxoskv: certificate " + filepath.Join(spoiled, "elect.pem") + " with key ",
			old:     "FAIL  certificate: paxoskv: this side's certificate has expired",
		} {
			doctor := startCommand(t, c.as(folder, "doctor", "--ttl", "5s"))
			require.Equal(t, 1, doctor.status(t))
			require.Contains(t, doctor.out.String(), want)
		}
		require.Contains(t, members[0].err.String(), "error: changed certificate not used, the one before is until=")
		return true
	})
}

// reached returns what elect doctor says when it has reached all members.
func (c *cluster) reached() (report string) {
	c.Helper()
	eventually(c.T, "all members are reached", func() bool {
		var status int
		status, report = c.ask("doctor", "--ttl", "5s")
		return status == 0 && strings.Contains(report, "OK    members: all 3 are reached")
	})
	return report
}

// lost reports whether one of those who stand has lost a term.
func lost(members []*proc) bool {
	return slices.ContainsFunc(members, func(m *proc) bool { return strings.Contains(m.err.String(), "lost") })
}

// kill kills processes.
func kill(all []*proc) {
	for _, p := range all {
		_ = p.Process.Kill()
	}
}

// docs/peers.md says how.
func TestMembersMoveToAnotherAuthority(t *testing.T) {
	t.Parallel()
	inTime(t, func(c *cluster, end time.Time) bool {
		members, leader := c.members()
		defer kill(members)
		if leader == "" {
			return false
		}
		next := filepath.Join(t.TempDir(), "next")
		c.peers("init", append([]string{"--dir", next, "--cluster", "test", "--here"}, c.addrs...)...)
		c.peers("add", "--dir", next, "--client", "client")
		both := filepath.Join(t.TempDir(), "both.pem")
		cat := exec.Command("sh", "-c", `cat "$0/ca.pem" "$1/ca.pem" > "$2"`, c.dir, next, both)
		require.NoError(t, cat.Run())

		all := append([]string{"client"}, c.addrs...)
		leads := func() bool {
			_, row := c.leader()
			return row == leader
		}
		for _, who := range all {
			c.put(both, filepath.Join(c.folder(c.dir, who), "ca.pem"))
		}
		steady := leads() // both are trusted
		for _, who := range all {
			c.put(filepath.Join(c.folder(next, who), "elect.pem"), filepath.Join(c.folder(c.dir, who), "elect.pem"))
			steady = steady && leads() // some have certificates of the new one
		}
		for _, who := range all {
			c.put(filepath.Join(next, "ca.pem"), filepath.Join(c.folder(c.dir, who), "ca.pem"))
		}
		steady = steady && leads() // only the new one is trusted
		if !steady || time.Now().After(end) {
			return false
		}
		c.ended(end) // all connections are new
		if !leads() || lost(members) {
			return false
		}
		c.reached()
		return true
	})
}

// The members are started as init prints it.
func TestWhatPeersInitPrintsStartsMembers(t *testing.T) {
	t.Parallel()
	c, printed := newCluster(t, 5*time.Second, time.Hour)
	commands := regexp.MustCompile(`(?m)^  set -a; .*$`).FindAllString(printed, -1)
	require.Len(t, commands, 3)
	for _, command := range commands {
		command = strings.Replace(command, "elect run NAME -- COMMAND", `exec "$0" run --ttl 5s --grace 100ms job -- sleep 1000`, 1)
		startCommand(t, exec.Command("sh", "-c", command, elect))
	}
	require.Eventually(t, func() bool { status, _ := c.leader(); return status == 0 }, time.Minute, 50*time.Millisecond)
}

// What the pages say for three hosts makes what they then copy.
func TestTheCommandsOfThePagesAboutPeersWork(t *testing.T) {
	t.Parallel()
	steps, err := os.ReadFile("../../docs/run/peers.md")
	require.NoError(t, err)
	later, err := os.ReadFile("../../docs/peers.md")
	require.NoError(t, err)
	text := slices.Concat(steps, later)
	commands := regexp.MustCompile(`(?m)^(elect peers .*?|cat [^>].*)( > /dev/null &&)?$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, commands, 5)
	dir, want := t.TempDir(), []int{0, 0, 1, 0, 0} // nothing is to be renewed yet
	for i, command := range commands {
		cmd := exec.Command("sh", "-c", command[1])
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(elect)+":"+os.Getenv("PATH"))
		p := startCommand(t, cmd)
		require.Equal(t, want[i], p.status(t), "%s\n%s", command[1], &p.err)
	}
	for _, copied := range []string{"nightly/a.example_7000/elect.pem", "nightly/b.example_7000/elect.env", "nightly/c.example_7000/ca.pem", "next/a.example_7000/elect.pem", "both.pem"} {
		require.Contains(t, string(text)+"both.pem", filepath.Base(copied))
		require.FileExists(t, filepath.Join(dir, copied))
	}
	env, err := os.ReadFile(filepath.Join(dir, "nightly/a.example_7000/elect.env"))
	require.NoError(t, err)
	for line := range strings.Lines(string(env)) {
		if !strings.HasPrefix(line, "#") {
			require.Contains(t, string(text), line)
		}
	}
}

func TestPeersSayWhatIsWrongAndWhatIsDone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "two")
	run := func(want int, args ...string) (out, stderr string) {
		status, out, stderr := finish(t, append([]string{"peers"}, args...)...)
		require.Equal(t, want, status, "%q: %s", args, stderr)
		return out, stderr
	}
	out, stderr := run(0, "init", "--dir", dir, "b.example:7000", "a.example:7000")
	require.Equal(t, "elect: warning: when one of two members is gone, nobody is elected: use three, or five\n", stderr)
	require.Contains(t, out, "copy "+dir+"/b.example_7000/* to b.example:/etc/elect-two/\n")
	require.Contains(t, out, "  set -a; . /etc/elect-two/elect.env; set +a; elect run NAME -- COMMAND\n")
	require.Contains(t, out, "The first certificate to renew is that of b.example:7000, on 20")

	out, stderr = run(1, "renew", "--dir", dir)
	require.NotContains(t, out, "copy ")
	require.Empty(t, stderr)
	out, _ = run(0, "renew", "--dir", dir, "a.example:7000")
	require.Contains(t, out, "copy "+dir+"/a.example_7000/elect.pem to a.example:/etc/elect-two/\n")
	_, stderr = run(0, "renew", "--dir", dir, "--valid-for", "99999h", "a.example:7000")
	require.Contains(t, stderr, "elect: warning: the authority ends at 20")
	out, stderr = run(0, "add", "--dir", dir, "c.example:7000")
	require.NotContains(t, stderr, "members", "three are fine")
	require.Contains(t, out, "Stop all of them, wait for max-ttl (1m)")
	require.Contains(t, out, "copy "+dir+"/a.example_7000/elect.env to a.example:/etc/elect-two/\n")

	missing := filepath.Join(t.TempDir(), "missing")
	for args, want := range map[string]string{
		"init a:1":                                 `required flag(s) "dir" not set`,
		"init --dir " + dir + " a:1":               dir + " has a cluster, which stays as it is: use elect peers renew or add, or name another folder for another cluster",
		"init --dir /dev/null/x a:1":               "open /dev/null/x: not a directory",
		"init --dir " + missing:                    "no members: name the address of each, host:port",
		"init --dir " + missing + " a":             `member "a" has no port: write host:port, such as a.example:7000`,
		"init --dir " + missing + " a:1 A:1":       `member "a:1" is named twice`,
		"init --dir= a:1":                          `cluster "": name it with up to 50 letters, digits, dots, hyphens and underscores, such as nightly`,
		"init --dir= --cluster x a:1":              "the name of the folder is empty",
		"init --dir x --here --files /x a:1":       "if any flags in the group [here files] are set none of the others can be; [files here] were all set",
		"init --dir x --with max-tll=3s a:1":       `--with: store paxos:...: unknown parameter "max-tll"; use paxos://host:port?peers=host:port,host:port&cluster=name, parameters peers cluster cacert cert key dir founding listen max-ttl round drift`,
		"init --dir x --with dir=/x a:1":           `--with: store paxos:...: parameter "dir" is given twice; use paxos://host:port?peers=host:port,host:port&cluster=name, parameters peers cluster cacert cert key dir founding listen max-ttl round drift`,
		"init --dir x --valid-for 1y a:1":          `--valid-for "1y" is not a duration, such as 1m30s or 500ms`,
		"init --dir x --valid-for -1s a:1":         "certificates that are valid for -1s: use 1s or more",
		"renew --dir " + missing:                   missing + " has no cluster.json: name the folder that elect peers init has made",
		"renew --dir " + dir + " z:1":              `"z:1" is not in this cluster: b.example:7000, a.example:7000, c.example:7000 are`,
		"renew --dir " + dir + " --all a.example:": "names together with --all: use one of them",
		"add --dir " + dir:                         "nobody to add: name a member, host:port, or a client, --client NAME",
		"add --dir " + dir + " laptop":             `member "laptop" has no port: write host:port, such as a.example:7000`,
		"add --dir " + dir + " a.example:7000":     `member "a.example:7000" is named twice`,
		"ini":                                      `unknown command "ini" for "elect peers"; did you mean init?`,
	} {
		_, stderr := run(125, strings.Fields(args)...)
		require.Equal(t, "elect: "+want+"\n", stderr, args)
	}
	require.NoDirExists(t, missing)
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		require.NotContains(t, filepath.Base(path), ".elect", "nothing half made is left")
		return err
	}))
}
