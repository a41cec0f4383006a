package stores

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
)

func TestAQuorumIsFitIfItsNumberIsOddAndBearsALoss(t *testing.T) {
	for members, want := range map[int]Level{1: Warn, 2: Warn, 3: OK, 4: Warn, 5: OK} {
		st := paxoskv.Status{Members: make([]paxoskv.Member, members), Majority: members/2 + 1}
		require.Equal(t, want, quorum(st).Level, "%d members", members)
	}
}

func TestMembersThatAreNotReachedAreNamedWithTheReason(t *testing.T) {
	st := paxoskv.Status{Majority: 2, Members: []paxoskv.Member{
		{ID: "a:1", Connected: true},
		{ID: "b:1", Trouble: errors.New("connection refused")},
		{ID: "c:1", Connected: true},
	}}
	f := reachable(st)
	require.Equal(t, Warn, f.Level)
	require.Equal(t, "2 of 3 are reached; b:1: connection refused", f.Found)
	st.Members[1] = st.Members[0]
	require.Equal(t, Finding{Level: OK, Subject: "members", Found: "all 3 are reached"}, reachable(st))
}

func TestMembersShowHowLongTheirCertificatesLast(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cert := func(past, left int) *x509.Certificate {
		return &x509.Certificate{NotBefore: now.AddDate(0, 0, -past), NotAfter: now.AddDate(0, 0, left)}
	}
	st := paxoskv.Status{Members: []paxoskv.Member{{ID: "a:1", Certificate: cert(10, 80)}, {ID: "b:1"}, {ID: "c:1", Certificate: cert(59, 31)}}}
	require.Equal(t, Finding{Level: OK, Subject: "certificates", Found: "the first ends in 31 days: c:1"}, certificates(st, now))
	st.Members[2].Certificate = cert(60, 30)
	require.Equal(t, Warn, certificates(st, now).Level)
	require.Equal(t, "of these, two thirds of the life are over: c:1 in 30 days", certificates(st, now).Found)
	st.Members = st.Members[1:2]
	require.Equal(t, Finding{Level: OK, Subject: "certificates", Found: "no member is reached that could show one"}, certificates(st, now))
}
