package run_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A lan is a few hosts on which the commands of a page run as they are written: each host has its own
// network, processes, name, /etc, /usr/local, /var and /run. They are namespaces of Linux, which
// take root, and end with the test or with its process. The folder of the lan is a machine beside
// them, from which ssh and scp reach them.
type lan struct {
	*testing.T
	dir    string
	bridge *exec.Cmd // holds the network between the hosts
	hosts  []*host
	names  string // /etc/hosts
}

// A host is a place in which commands run.
type host struct {
	*lan
	name string
	pid  int // of its first process
}

const gateway = "10.99.0.254"

// newLan starts hosts. An address at which servers answer, such as etcd-1:2379, is passed on to
// the real server.
func newLan(t *testing.T, servers map[string]string, names ...string) *lan {
	t.Helper()
	require.NoError(t, build())
	l := &lan{T: t, dir: t.TempDir(), names: "127.0.0.1 localhost\n"}
	l.bridge = l.hold("unshare", "--net", "sh", "-ec",
		"ip link add br0 type bridge; ip addr add "+gateway+"/24 dev br0; ip link set br0 up; ip link set lo up; echo made; exec cat")
	for i, name := range names {
		l.names += fmt.Sprintf("10.99.0.%d %s\n", i+1, name)
	}
	ports := map[string]string{}
	for addr, upstream := range servers {
		name, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		l.names += gateway + " " + name + "\n"
		ports[port] = upstream
	}
	for port, upstream := range ports {
		l.forward(port, upstream)
	}
	require.NoError(t, os.Mkdir(filepath.Join(l.dir, "bin"), 0o755))
	for name, text := range map[string]string{"ssh": ssh, "scp": scp} {
		l.script(filepath.Join(l.dir, "bin", name), text)
	}
	require.NoError(t, os.Symlink(filepath.Join(local, "bin/elect"), filepath.Join(l.dir, "bin/elect")))
	deploy, err := filepath.Abs("../../deploy")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(deploy, filepath.Join(l.dir, "deploy"))) // of the checkout
	for i, name := range names {
		l.hosts = append(l.hosts, l.host(i+1, name))
	}
	return l
}

// hold starts a command that prints "made", and ends with its input.
func (l *lan) hold(name string, args ...string) *exec.Cmd {
	l.Helper()
	cmd := exec.Command(name, args...)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	in, err := cmd.StdinPipe()
	require.NoError(l, err)
	out, err := cmd.StdoutPipe()
	require.NoError(l, err)
	require.NoError(l, cmd.Start())
	l.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // its error says how it ended
	})
	_, err = io.ReadFull(out, make([]byte, len("made\n")))
	require.NoError(l, err, "%s: %s", name, &trouble)
	return cmd
}

// A host changes its own /etc and /usr/local only, and begins with nothing in the other folders.
const own = `
hostname "$1"
mount -t tmpfs tmpfs "$2"
own() { # what it finds in a folder
	mkdir -p "$2/upper" "$2/work"
	mount -t overlay overlay -o "lowerdir=$3,upperdir=$2/upper,workdir=$2/work" "$1"
}
own /etc "$2/etc" /etc
own /usr/local "$2/local" "$3:/usr/local"
for d in root run var; do mount -t tmpfs tmpfs "/$d"; done
mkdir -p /var/lib /var/tmp
ip link set lo up
echo made
exec bash -c "read -r _"` // it also collects orphans

func (l *lan) host(i int, name string) *host {
	l.Helper()
	disk := filepath.Join(l.dir, "disk-"+name)
	require.NoError(l, os.Mkdir(disk, 0o755))
	holder := l.hold("unshare", "--mount", "--pid", "--uts", "--net", "--fork", "--kill-child", "--mount-proc",
		"sh", "-ec", own, "sh", name, disk, local)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", holder.Process.Pid))
	require.NoError(l, err)
	h := &host{lan: l, name: name}
	_, err = fmt.Sscan(string(children), &h.pid)
	require.NoError(l, err)
	l.must("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", l.bridge.Process.Pid), "sh", "-ec", fmt.Sprintf(
		"ip link add v%[1]d type veth peer name eth0 netns %[2]d; ip link set v%[1]d master br0 up", i, h.pid))
	h.runs(fmt.Sprintf("ip addr add 10.99.0.%d/24 dev eth0; ip link set eth0 up", i))
	require.NoError(l, os.WriteFile(h.path("/etc/hosts"), []byte(l.names), 0o644))
	require.NoError(l, os.WriteFile(filepath.Join(l.dir, "bin", name+".pid"), fmt.Append(nil, h.pid), 0o644))
	return h
}

// path is how the test reaches a file of the host.
func (h *host) path(path string) string { return fmt.Sprintf("/proc/%d/root%s", h.pid, path) }

// command is one on the host, with the environment of a shell there.
func (h *host) command(script string) *exec.Cmd {
	cmd := exec.Command("nsenter", fmt.Sprintf("--target=%d", h.pid), "--mount", "--pid", "--uts", "--net",
		"sh", "-ec", "cd\n"+script) // --wd would be a folder of this machine
	cmd.Env = []string{"HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return cmd
}

// says runs a script on the host, and returns its exit status and what it prints. What it leaves
// in the background runs on.
func (h *host) says(script string) (status int, out string) {
	h.Helper()
	return outcome(h.T, h.command(script))
}

// runs is says of a script that has to succeed.
func (h *host) runs(script string) string {
	h.Helper()
	status, out := h.says(script)
	require.Zero(h, status, "%s: %s: %s", h.name, script, out)
	return out
}

// eventually runs a script until it succeeds, for a minute at most, and returns what it prints then.
func (h *host) eventually(script string) (out string) {
	h.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var status int
		if status, out = h.says(script); status == 0 {
			return out
		}
		require.Less(h, time.Now(), deadline, "%s: %s: %s", h.name, script, out)
	}
}

// beside runs a script on the machine beside the hosts.
func (l *lan) beside(script string) (status int, out string) {
	l.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(l.dir, "bin")+":"+os.Getenv("PATH"))
	return outcome(l.T, cmd)
}

// goGets makes go get find the modules of this checkout, which are not released yet.
func (l *lan) goGets() {
	l.Helper()
	program, err := exec.LookPath("go")
	require.NoError(l, err)
	root, err := filepath.Abs("../..")
	require.NoError(l, err)
	l.script(filepath.Join(l.dir, "bin/go"), fmt.Sprintf(goGet, program, root))
}

// requireBeside is beside of a script that has to succeed.
func (l *lan) requireBeside(script string) string {
	l.Helper()
	status, out := l.beside(script)
	require.Zero(l, status, "%s: %s", script, out)
	return out
}

// program puts a shell script on the host.
func (h *host) program(path, text string) {
	h.Helper()
	h.script(h.path(path), text)
}

func (l *lan) must(name string, args ...string) {
	l.Helper()
	status, out := outcome(l.T, exec.Command(name, args...))
	require.Zero(l, status, "%s %s: %s", name, args, out)
}

func (l *lan) script(path, text string) {
	l.Helper()
	require.NoError(l, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
}

// outcome runs a command to its end, which a process that it leaves behind does not delay.
func outcome(t *testing.T, cmd *exec.Cmd) (status int, out string) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the state has its status
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	return cmd.ProcessState.ExitCode(), string(text)
}

// forward listens at a port in the network of the hosts, and passes connections on.
func (l *lan) forward(port, upstream string) {
	l.Helper()
	listener := l.listen(net.JoinHostPort(gateway, port))
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	l.Cleanup(func() { cancel(); listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(ctx, near, upstream) })
		}
	})
}

// listen opens a socket in the network of the hosts.
func (l *lan) listen(addr string) net.Listener {
	l.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net")
	require.NoError(l, err)
	defer here.Close()
	there, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", l.bridge.Process.Pid))
	require.NoError(l, err)
	defer there.Close()
	require.NoError(l, unix.Setns(int(there.Fd()), unix.CLONE_NEWNET))
	listener, err := net.Listen("tcp", addr)
	require.NoError(l, unix.Setns(int(here.Fd()), unix.CLONE_NEWNET))
	require.NoError(l, err)
	return listener
}

func join(ctx context.Context, near net.Conn, upstream string) {
	defer near.Close()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", upstream)
	if err != nil {
		return
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	go func() { _, _ = io.Copy(far, near); far.Close() }()
	_, _ = io.Copy(near, far)
}

// The stand-ins for what is not here. ssh and scp enter the namespaces of a host.
const (
	ssh = `host=$1; shift
exec nsenter --target="$(cat "$(dirname "$0")/$host.pid")" --mount --pid --uts --net sh -c "cd; $*"
`
	scp = `[ "$1" = -p ] && shift
for to; do :; done
host=${to%%:*}
root=/proc/$(cat "$(dirname "$0")/$host.pid")/root
while [ $# -gt 1 ]; do cp -p "$1" "$root${to#*:}"; shift; done
`
)
