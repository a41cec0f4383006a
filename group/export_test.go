package group

import (
	"time"

	"github.com/electkv/election/internal/invitation"
)

// A Transport is one of the test's.
type Transport = transport

// NewOn is New over a transport of the test's, with IDs of any form.
func NewOn(opts Options, incarnation uint64, over Transport) (*Member, error) {
	return start(opts.defaults(), opts.ID, opts.Peers, incarnation, over)
}

// Merged is the longest time in which all groups of a network that is whole become one.
func (o Options) Merged() (d time.Duration) { return o.defaults().timing().Merged() }

// Silence is the longest time for which a process that is lost is not missed.
func (o Options) Silence() (d time.Duration) { return o.defaults().timing().Silence() }

// MaxPeers is how many processes there may be.
const MaxPeers = invitation.MaxMembers
