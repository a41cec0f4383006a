//go:build unix

package testenv

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/electkv/election/internal/testenv/install"
)

// A Network is one of hosts of the test's own, all connected to this machine
// and to each other. It consists of network namespaces: one for each host, and
// one for the router between them, where packets are lost on demand. They go
// with the processes that hold them, which the guard ends, so nothing of it
// outlives the test, or the test process.
//
// On a host, 127.0.0.1 is this machine: a host has no loopback of its own, but
// routes that address, like every other one, to the router and on to here. So
// the addresses of servers and proxies, and whatever servers say of themselves
// and each other, are right on a host too. Files and unix sockets are this
// machine's, and no fault of the network concerns them.
type Network struct {
	t      testing.TB
	claim  net.Listener // keeps the subnet ours
	subnet string       // the first three numbers of its addresses
	link   string       // this machine's interface
	router *namespace

	mu    sync.Mutex
	hosts []*Host
}

// A Host is a place in a [Network] where commands run. It has one fault at a
// time: each of Cut, CutRequests, CutReplies, Loss and Heal takes the place of
// the one before. Packets are lost on their way, in silence: nobody is told.
// What TCP sends again after Heal arrives.
//
// The methods may be called from any goroutine that may fail the test.
type Host struct {
	network *Network
	place   *namespace
	link    string // the router's interface to it
	addr    string
	faults  []string // rules of the router. Guarded by network.mu
}

// maxHosts is how many fit into a subnet, each with a net of four addresses.
const maxHosts = 62

// CanNetwork returns nil if [NewNetwork] works here, or else why not: it needs
// Linux, root, and the commands ip, nft, nsenter and unshare.
func CanNetwork() error {
	n, err := newNetwork()
	if err != nil {
		return err
	}
	_, err = n.connect()
	return errors.Join(err, n.close())
}

// NewNetwork makes a network that ends with the test. For anybody but root it skips the test;
// it fails it where there can be none for root: see [CanNetwork].
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	needRoot(t)
	n, err := newNetwork()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	n.t = t
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return n
}

func newNetwork() (*Network, error) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return nil, errors.New("network: hosts are to be had as root on Linux only")
	}
	if missing := install.MissingTools(); len(missing) > 0 {
		return nil, fmt.Errorf("network: commands are missing: apt-get install %s", strings.Join(missing, " "))
	}
	router, err := newNamespace()
	if err != nil {
		return nil, err
	}
	n := &Network{router: router}
	if err := n.claimSubnet(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	if err := n.build(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// claimSubnet chooses one of the 512 subnets that are reserved for tests of
// networks (RFC 2544). An abstract socket, which ends with the process, keeps
// other test processes from it.
func (n *Network) claimSubnet() error {
	for i := range 512 {
		claim, err := net.Listen("unix", fmt.Sprintf("@election-test-network-%d", i))
		if err != nil {
			continue
		}
		n.link = fmt.Sprintf("electest%d", i)
		if _, err := net.InterfaceByName(n.link); err == nil {
			// Left by a process that has just ended, until its guard sees to it.
			claim.Close()
			continue
		}
		n.claim, n.subnet = claim, fmt.Sprintf("198.%d.%d", 18+i/256, i%256)
		return nil
	}
	return errors.New("network: no subnet is free")
}

// build connects this machine and the router.
func (n *Network) build() error {
	err := run("", "ip", "link", "add", n.link, "type", "veth", "peer", "name", "up0", "netns", fmt.Sprint(n.router.pid()))
	if err != nil {
		return err
	}
	if err := run(fmt.Sprintf(`
addr add %[1]s.1/30 dev %[2]s
link set %[2]s up
route add %[1]s.0/24 via %[1]s.2 dev %[2]s
`, n.subnet, n.link), "ip", "-batch", "-"); err != nil {
		return err
	}
	// Packets to and from 127.0.0.0/8 may use this interface.
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+n.link+"/route_localnet", []byte("1"), 0); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return errors.Join(
		n.router.set("ip_forward", "conf/all/route_localnet"),
		n.router.run(fmt.Sprintf(`
addr add %[1]s.2/30 dev up0
link set up0 up
route add default via %[1]s.1
route add 127.0.0.0/8 via %[1]s.1
`, n.subnet), "ip", "-batch", "-"))
}

// close takes the network down.
func (n *Network) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		h.place.close()
	}
	n.router.close()
	if n.claim == nil {
		return nil
	}
	defer n.claim.Close()
	// The kernel takes its time to remove what ended with the namespace, and may do so
	// while this does.
	err := run("", "ip", "link", "delete", n.link)
	if _, gone := net.InterfaceByName(n.link); gone != nil {
		return nil
	}
	return err
}

// Host adds a host, which is connected to this machine and to the other hosts.
func (n *Network) Host() *Host {
	n.t.Helper()
	h, err := n.connect()
	if err != nil {
		n.t.Fatalf("testenv: %v", err)
	}
	return h
}

func (n *Network) connect() (*Host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := len(n.hosts) + 1
	if i > maxHosts {
		return nil, fmt.Errorf("network: no room for more than %d hosts", maxHosts)
	}
	place, err := newNamespace()
	if err != nil {
		return nil, err
	}
	h := &Host{network: n, place: place, link: fmt.Sprintf("host%d", i), addr: fmt.Sprintf("%s.%d", n.subnet, 4*i+2)}
	n.hosts = append(n.hosts, h)
	gateway := fmt.Sprintf("%s.%d", n.subnet, 4*i+1)
	if err := n.router.run(fmt.Sprintf(`
link add %[1]s type veth peer name eth0 netns %[2]d
addr add %[3]s/30 dev %[1]s
link set %[1]s up
`, h.link, place.pid(), gateway), "ip", "-batch", "-"); err != nil {
		return nil, err
	}
	return h, errors.Join(
		place.set("conf/all/route_localnet"),
		place.run(fmt.Sprintf(`
addr add %[1]s/30 dev eth0
link set eth0 up
route add default via %[2]s
route add 127.0.0.0/8 via %[2]s
`, h.addr, gateway), "ip", "-batch", "-"))
}

// Addr returns the host's address, without a port, for servers that run on it.
func (h *Host) Addr() string { return h.addr }

// Command makes a command that has not been started run on the host. It keeps
// its process id, and ends with the test process: see [Guard].
func (h *Host) Command(cmd *exec.Cmd) {
	t := h.network.t
	t.Helper()
	if cmd.Err != nil {
		t.Fatalf("testenv: %v", cmd.Err)
	}
	if err := h.place.enter(cmd); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	Guard(t, cmd)
}

// Cut loses all packets from and to the host.
func (h *Host) Cut() {
	h.network.t.Helper()
	h.set(h.from("drop"), h.to("drop"))
}

// CutRequests loses what the host sends; what is sent to it arrives.
func (h *Host) CutRequests() { h.network.t.Helper(); h.set(h.from("drop")) }

// CutReplies loses what is sent to the host; what it sends arrives.
func (h *Host) CutReplies() { h.network.t.Helper(); h.set(h.to("drop")) }

// Loss loses each packet from or to the host with a probability of so many
// percent.
func (h *Host) Loss(percent int) {
	h.network.t.Helper()
	rule := fmt.Sprintf("numgen random mod 100 < %d drop", percent)
	h.set(h.from(rule), h.to(rule))
}

// Heal ends every fault of the host.
func (h *Host) Heal() { h.network.t.Helper(); h.set() }

func (h *Host) from(rule string) string { return "iifname " + h.link + " " + rule }
func (h *Host) to(rule string) string   { return "oifname " + h.link + " " + rule }

// set puts rules in the place of the host's present ones, in one step.
func (h *Host) set(rules ...string) {
	n := h.network
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	h.faults = rules
	var all []string
	for _, host := range n.hosts {
		all = append(all, host.faults...)
	}
	table := fmt.Sprintf(`flush ruleset
table ip faults {
	chain forward {
		type filter hook forward priority 0
		%s
	}
}
`, strings.Join(all, "\n\t\t"))
	if err := n.router.run(table, "nft", "-f", "-"); err != nil {
		n.t.Fatalf("testenv: %v", err)
	}
}
