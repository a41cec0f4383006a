package doctor

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

func etcd(ctx context.Context, store *storeurl.Store) []Finding {
	findings := []Finding{
		{Level: OK, Subject: "clock", Found: "leases run on the servers' monotonic clocks"},
		{Level: OK, Subject: "expiry", Found: "etcd judges; with ?expiry=observer candidates do, by their own clocks: TTLs from 500ms on, for one write per refresh"},
	}
	if store.Observed {
		findings = []Finding{candidatesJudge()}
	}
	for _, endpoint := range store.Etcd.Endpoints() {
		findings = append(findings, etcdEndpoint(ctx, store.Etcd, endpoint))
	}
	return append(findings, etcdMembers(ctx, store.Etcd), etcdAlarms(ctx, store.Etcd))
}

func etcdEndpoint(ctx context.Context, client *clientv3.Client, endpoint string) Finding {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		return Finding{Warn, "endpoint " + endpoint, err.Error(), "a candidate that meets it has to wait for another", "repair it, or take it out of the URL"}
	}
	f := Finding{Level: OK, Subject: "endpoint " + endpoint, Found: "etcd " + status.Version}
	switch {
	case status.Leader == 0:
		return Finding{Fail, f.Subject, f.Found + ", without a leader", "nothing can be written", "see that a majority of the members runs"}
	case !fixedRevoke(status.Version):
		f.Level, f.Why, f.Advice = Warn, "it may renew a lease that was revoked", "use 3.4.38, 3.5.23, 3.6.5 or later"
	}
	return f
}

// fixedRevoke reports whether a version never renews a revoked lease.
func fixedRevoke(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return false
	}
	least, ok := map[int]int{4: 38, 5: 23, 6: 5}[minor]
	return major > 3 || major == 3 && (minor > 6 || ok && patch >= least)
}

func etcdMembers(ctx context.Context, client *clientv3.Client) Finding {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return Finding{Level: Warn, Subject: "members", Found: "unknown: " + err.Error()}
	}
	f := Finding{Level: OK, Subject: "members", Found: fmt.Sprint(len(list.Members))}
	if len(list.Members) < 3 {
		f.Level, f.Why, f.Advice = Warn, "one lost member stops all elections", "run three or five"
	}
	return f
}

func etcdAlarms(ctx context.Context, client *clientv3.Client) Finding {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := client.AlarmList(ctx)
	if err != nil {
		return Finding{Level: Warn, Subject: "alarms", Found: "unknown: " + err.Error()}
	}
	for _, alarm := range list.Alarms {
		if alarm.Alarm != pb.AlarmType_NONE {
			return Finding{Fail, "alarms", alarm.Alarm.String(), "leaders keep their leases, and nobody new can be elected", "see the etcd manual on alarms, then etcdctl alarm disarm"}
		}
	}
	return Finding{Level: OK, Subject: "alarms", Found: "none"}
}

// candidatesJudge is for a store whose URL has expiry=observer.
func candidatesJudge() Finding {
	return Finding{Level: OK, Subject: "clock", Found: "candidates judge expiry by their own clocks; the servers' are not asked, and each refresh is a write"}
}
