package electionotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/electkv/election"
)

// roles are those that are counted, also where there are none.
func roles() []election.Role {
	return []election.Role{election.RoleIdle, election.RoleCandidate, election.RoleHeir, election.RoleLeader}
}

// A standing is what the candidates of a group of elections in this process are at a moment.
type standing struct {
	grouped   bool // it is not of one election alone
	roles     map[election.Role]int64
	token     uint64
	remaining time.Duration // the least of all leaders
	contact   time.Time     // the latest
}

// add counts a candidate.
func (s *standing) add(c election.Status) {
	s.roles[c.Role]++
	if c.Role == election.RoleLeader {
		if s.roles[c.Role] == 1 || c.Remaining < s.remaining {
			s.remaining = c.Remaining
		}
		s.token = max(s.token, c.Token)
	}
	if c.Contact.After(s.contact) {
		s.contact = c.Contact
	}
}

// standings returns what there is at this moment, by group.
func (t *Telemetry) standings() map[string]*standing {
	all := make(map[string]*standing)
	for _, c := range t.known() {
		group := t.group(c.Name())
		s := all[group]
		if s == nil {
			s = &standing{roles: make(map[election.Role]int64)}
			all[group] = s
		}
		s.grouped = s.grouped || group != c.Name()
		s.add(c.Status())
	}
	return all
}

// observe is called when metrics are collected.
func (t *Telemetry) observe(_ context.Context, o metric.Observer) error {
	for group, s := range t.standings() {
		of, leaders := labels(group), s.roles[election.RoleLeader]
		o.ObserveInt64(t.gauges.leader, leaders, of)
		for _, r := range roles() {
			o.ObserveInt64(t.gauges.role, s.roles[r], labels(group, roleKey.String(string(r))))
		}
		if leaders > 0 {
			o.ObserveFloat64(t.gauges.remaining, s.remaining.Seconds(), of)
		}
		if leaders > 0 && !s.grouped {
			o.ObserveInt64(t.gauges.token, signed(s.token), of)
		}
		if !s.contact.IsZero() {
			o.ObserveFloat64(t.gauges.contact, float64(s.contact.UnixMilli())/1000, of)
		}
	}
	return nil
}
