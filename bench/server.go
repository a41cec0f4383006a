package main

import (
	"github.com/electkv/election/internal/testenv"
)

const (
	inEtcd   = "etcd"
	inConsul = "consul"
	inRedis  = "redis"
	inMemory = "mem"
)

// storeNames are all stores, in the order of the tables.
var storeNames = []string{inEtcd, inConsul, inRedis, inMemory}

// A server is one that a work runs on.
type server struct {
	addr    string
	process *testenv.Server // nil if there is none
	meter   meter
}

// startServer starts a server of the stage's own that syncs to the disk as it does by
// default: testenv saves that.
func startServer(st *stage, store string) (*server, error) {
	s := &server{}
	err := st.try(func() {
		switch store {
		case inEtcd:
			s.process = testenv.StartEtcd(st, "--unsafe-no-fsync=false", "--election-timeout=1000")
			s.addr = s.process.Addr()
			s.meter = etcdMeter{s.addr}
		case inConsul:
			s.process = testenv.StartConsul(st, map[string]any{
				// api.Lock has one for each that waits or holds.
				"limits":    map[string]any{"http_max_conns_per_client": 18_000},
				"telemetry": map[string]any{"prometheus_retention_time": "24h", "disable_hostname": true},
			})
			s.addr = s.process.Addr()
			s.meter = consulMeter{s.addr}
		case inRedis:
			s.process = testenv.StartRedis(st, "--appendfsync", "everysec")
			s.addr = s.process.Addr()
			client := redisClient(s.addr)
			st.Cleanup(func() { client.Close() })
			s.meter = redisMeter{client}
		case inMemory:
			s.meter = noMeter{}
		}
	})
	return s, err
}

// serverSettings says how servers run, beside their defaults.
func serverSettings(store string) string {
	switch store {
	case inEtcd:
		return "one node, synced to the disk before it answers; heartbeat 100 ms, election timeout 1 s (its defaults)"
	case inConsul:
		return "one server, raft_multiplier 1, session_ttl_min 1 s, 18,000 connections per client (default: 200); api.Lock needs one for each that waits or holds"
	case inRedis:
		return "one server, appendonly yes, appendfsync everysec"
	}
	return "a map in the process"
}
