package wire

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxStrangers is how many connections may wait at the door, those from the
	// addresses of members not counted.
	maxStrangers = 256
	// maxPerAddress is how many of them may come from one address, a member's or not.
	maxPerAddress = 64
	// firstByteTime is how long a visitor may take to send the first byte. It is on its
	// way before the connection is accepted, unless it was lost once.
	firstByteTime = time.Second
	// lookUpPause is how long the door, when it is crowded, uses the addresses that the
	// names of the members had.
	lookUpPause = 10 * time.Second
)

// errCrowded ends a connection that had to make room for another one.
var errCrowded = errors.New("it had not said who it is, and too many others came")

// A door is where connections wait until it is known who they are. Nobody is turned away
// from it: when there is no room, a newcomer takes the place of another. That is the
// oldest one that has sent nothing, or the oldest one, of the address from which most
// have come. Members' addresses have room of their own.
type door struct {
	mu       sync.Mutex
	listed   map[string][]netip.Addr // where the list of members has them
	came     map[string]netip.Addr   // from where they came last
	waiting  []*visit                // in the order in which they came
	lookedUp time.Time
}

// A visit is one connection that waits.
type visit struct {
	net.Conn
	door    *door
	from    netip.Addr
	spoke   atomic.Bool
	dropped bool // guarded by the door's mu
}

func newDoor() *door { return &door{listed: map[string][]netip.Addr{}, came: map[string]netip.Addr{}} }

// expect notes who the members are, and forgets those that are none any more.
func (d *door) expect(members []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	listed, came := map[string][]netip.Addr{}, map[string]netip.Addr{}
	for _, m := range members {
		listed[m] = d.listed[m]
		if addr, err := netip.ParseAddr(hostOf(m)); err == nil {
			listed[m] = []netip.Addr{grouped(addr)}
		}
		if from, ok := d.came[m]; ok {
			came[m] = from
		}
	}
	d.listed, d.came = listed, came
}

// list notes where a member is.
func (d *door) list(m string, addrs ...netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.listed[m]; !ok {
		return
	}
	d.listed[m] = nil
	for _, addr := range addrs {
		d.listed[m] = append(d.listed[m], grouped(addr))
	}
}

// meet notes from where a member has come.
func (d *door) meet(m string, conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.listed[m]; ok {
		d.came[m] = origin(conn)
	}
}

// ofMember reports whether members have come from an address, or should.
func (d *door) ofMember(addr netip.Addr) bool {
	for _, from := range d.came {
		if from == addr {
			return true
		}
	}
	for _, addrs := range d.listed {
		if slices.Contains(addrs, addr) {
			return true
		}
	}
	return false
}

// enter lets a connection in, and sends another away if there is no room for both.
// It reports whether strangers crowd.
func (d *door) enter(conn net.Conn) (v *visit, crowded bool) {
	v = &visit{Conn: conn, door: d, from: origin(conn)}
	d.mu.Lock()
	defer d.mu.Unlock()
	same, strangers := 0, 0
	for _, w := range d.waiting {
		if w.from == v.from {
			same++
		}
		if !d.ofMember(w.from) {
			strangers++
		}
	}
	switch {
	case same >= maxPerAddress:
		d.drop(func(w *visit) bool { return w.from == v.from })
	case strangers >= maxStrangers && !d.ofMember(v.from):
		d.drop(d.ofBusiest())
	}
	d.waiting = append(d.waiting, v)
	return v, strangers >= maxStrangers
}

// ofBusiest selects those of the addresses, no members', from which most have come.
func (d *door) ofBusiest() func(*visit) bool {
	count, most := map[netip.Addr]int{}, 0
	for _, w := range d.waiting {
		if !d.ofMember(w.from) {
			count[w.from]++
			most = max(most, count[w.from])
		}
	}
	return func(w *visit) bool { return count[w.from] == most }
}

// drop sends the oldest silent one of some away, or the oldest one if none is silent.
func (d *door) drop(some func(*visit) bool) {
	i := slices.IndexFunc(d.waiting, func(w *visit) bool { return some(w) && !w.spoke.Load() })
	if i < 0 {
		i = slices.IndexFunc(d.waiting, some)
	}
	w := d.waiting[i]
	w.dropped = true
	w.Close()
	d.waiting = slices.Delete(d.waiting, i, i+1)
}

// leave takes a visit from the door, whose visitor is known now, or gone. It reports
// whether it was sent away.
func (v *visit) leave() (dropped bool) {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	v.door.waiting = slices.DeleteFunc(v.door.waiting, func(w *visit) bool { return w == v })
	return v.dropped
}

// Read notes that the visitor has said something, from when on it has more time.
func (v *visit) Read(b []byte) (int, error) {
	n, err := v.Conn.Read(b)
	if n > 0 && !v.spoke.Swap(true) {
		_ = v.SetDeadline(time.Now().Add(helloTime)) // if it fails, so does what follows
	}
	return n, err
}

// stale reports whether it is time to look up the members' names again, and notes that
// somebody does.
func (d *door) stale() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.lookedUp) < lookUpPause {
		return false
	}
	d.lookedUp = time.Now()
	return true
}

// lookUp asks for the addresses of the members that are known by names.
func (n *Node) lookUp() {
	n.mu.Lock()
	members := n.members
	n.mu.Unlock()
	for _, m := range members {
		if _, err := netip.ParseAddr(hostOf(m)); err == nil {
			continue
		}
		all, err := net.DefaultResolver.LookupNetIP(n.ctx, "ip", hostOf(m))
		if err != nil && n.ctx.Err() == nil {
			n.log.complain(m, "address_not_found", "address not found", err)
		}
		if err == nil {
			n.door.list(m, all...)
		}
	}
}

// origin is where a connection comes from, as far as the door tells one from another.
func origin(conn net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return grouped(from.Addr())
}

// grouped returns an address, or, of IPv6, its network: whoever has one address of it
// has all.
func grouped(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return addr
	}
	return network.Addr()
}
