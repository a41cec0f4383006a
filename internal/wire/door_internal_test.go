package wire

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A knock is a connection that only comes from somewhere, and notes what befalls it.
type knock struct {
	net.Conn
	from   string
	closed bool
	until  time.Time
}

func (k *knock) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(k.from), 999))
}
func (k *knock) Close() error                  { k.closed = true; return nil }
func (k *knock) Read([]byte) (int, error)      { return 1, nil }
func (k *knock) SetDeadline(t time.Time) error { k.until = t; return nil }

func doorOf(members ...string) *door {
	d := newDoor()
	d.expect(members)
	return d
}

// come has so many connections come to a door from an address.
func come(d *door, n int, from string) (all []*knock, visits []*visit) {
	for range n {
		k := &knock{from: from}
		v, _ := d.enter(k)
		all, visits = append(all, k), append(visits, v)
	}
	return all, visits
}

func closed(all []*knock) (n int) {
	for _, k := range all {
		if k.closed {
			n++
		}
	}
	return n
}

func TestOfOneAddressTheOldestSilentOneGoesFirst(t *testing.T) {
	for _, from := range []string{"10.0.0.1", "10.9.9.9"} { // a member's, and a stranger's
		d := doorOf("10.0.0.1:1")
		all, visits := come(d, maxPerAddress, from)
		_, err := visits[0].Read(nil)
		require.NoError(t, err)
		come(d, 2, from)
		require.False(t, all[0].closed, "it has spoken")
		require.True(t, all[1].closed)
		require.True(t, all[2].closed)
		require.Equal(t, 2, closed(all))
		require.True(t, visits[1].leave())
		require.False(t, visits[0].leave())
		for _, v := range visits {
			_, _ = v.Read(nil)
		}
		require.Len(t, d.waiting, maxPerAddress-1)
	}
}

func TestWhereManyAddressesCrowdTheBusiestGivesRoom(t *testing.T) {
	d := doorOf("10.0.0.1:1", "b.example:1")
	few, _ := come(d, 2, "10.1.0.1")
	many, _ := come(d, 40, "10.1.0.2")
	single := []*knock{}
	for i := range maxStrangers - 42 {
		all, _ := come(d, 1, fmt.Sprintf("10.2.0.%d", i))
		single = append(single, all...)
	}
	require.Zero(t, closed(few)+closed(many)+closed(single))
	late, _ := come(d, 1, "10.3.0.1")
	require.Equal(t, 1, closed(many))
	require.True(t, many[0].closed)
	require.Zero(t, closed(few)+closed(single)+closed(late))

	// Those of members have room of their own.
	member, _ := come(d, 30, "10.0.0.1")
	mapped, _ := come(d, 30, "::ffff:10.0.0.1")
	require.Equal(t, 1, closed(many)+closed(few)+closed(single)+closed(late))
	d.list("b.example:1", netip.MustParseAddr("10.4.0.1"))
	d.meet("b.example:1", &knock{from: "10.4.0.2"})
	listed, _ := come(d, 30, "10.4.0.1")
	came, _ := come(d, 30, "10.4.0.2")
	require.Equal(t, 1, closed(many)+closed(few)+closed(single)+closed(late))

	// Nothing of what strangers do touches them.
	for i := range 1000 {
		come(d, 1, fmt.Sprintf("10.5.%d.%d", i/200, i%200))
	}
	require.Zero(t, closed(member)+closed(mapped)+closed(listed)+closed(came))
	require.Len(t, d.waiting, maxStrangers+120)
}

// Its room is another's then.
func TestTheDoorForgetsThoseThatAreNoMembersAnyMore(t *testing.T) {
	d := doorOf("10.0.0.1:1", "b.example:1", "c.example:1")
	d.list("b.example:1", netip.MustParseAddr("10.0.0.2"))
	d.meet("b.example:1", &knock{from: "10.0.0.3"})
	d.meet("c.example:1", &knock{from: "10.0.0.4"})
	ofMembers := func() (all []bool) {
		for i := 1; i <= 4; i++ {
			all = append(all, d.ofMember(netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", i))))
		}
		return all
	}
	require.Equal(t, []bool{true, true, true, true}, ofMembers())
	d.expect([]string{"b.example:1"})
	require.Equal(t, []bool{false, true, true, false}, ofMembers())
	d.expect(nil)
	d.list("b.example:1", netip.MustParseAddr("10.0.0.2")) // looked up meanwhile
	d.meet("b.example:1", &knock{from: "10.0.0.3"})        // and let in
	require.Equal(t, []bool{false, false, false, false}, ofMembers())
}

func TestWhereEachAddressHasOneTheOldestSilentOneGoes(t *testing.T) {
	d := doorOf()
	all := []*knock{}
	for i := range maxStrangers {
		k, v := come(d, 1, fmt.Sprintf("10.2.%d.%d", i/200, i%200))
		all = append(all, k...)
		if i != 7 {
			_, _ = v[0].Read(nil)
		}
	}
	come(d, 1, "10.3.0.1")
	require.True(t, all[7].closed)
	come(d, 1, "10.3.0.2")
	require.Equal(t, 1, closed(all), "the one that came before it has said nothing")
	for _, w := range d.waiting {
		w.spoke.Store(true)
	}
	come(d, 1, "10.3.0.3")
	require.True(t, all[0].closed)
}

func TestAddressesOfOneIPv6NetworkAreOne(t *testing.T) {
	d := doorOf()
	for i := range maxPerAddress {
		come(d, 1, fmt.Sprintf("2001:db8::%x", i))
	}
	require.Len(t, d.waiting, maxPerAddress)
	come(d, 1, "2001:db8::ffff")
	require.Len(t, d.waiting, maxPerAddress)
	come(d, 1, "2001:db8:0:1::1")
	require.Len(t, d.waiting, maxPerAddress+1)
}

func TestAVisitorThatSpeaksHasMoreTimeOnce(t *testing.T) {
	d := doorOf()
	all, visits := come(d, 1, "10.0.0.1")
	_, _ = visits[0].Read(nil)
	require.WithinDuration(t, time.Now().Add(helloTime), all[0].until, helloTime/2)
	all[0].until = time.Time{}
	_, _ = visits[0].Read(nil)
	require.Zero(t, all[0].until)
}

func TestNamesAreLookedUpSeldom(t *testing.T) {
	d := doorOf()
	require.True(t, d.stale())
	require.False(t, d.stale())
	d.lookedUp = d.lookedUp.Add(-lookUpPause)
	require.True(t, d.stale())
}
