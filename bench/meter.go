package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/redis/go-redis/v9"
)

// A reading is what a server says of itself, since it was started.
type reading struct {
	Requests  float64 // that clients have sent, each message of a stream counted
	Proposals float64 // that went through Raft
	CPU       float64 // seconds
	own       float64 // requests that one look takes
}

// since returns what was counted between two looks, without what they took.
func (r reading) since(before reading) reading {
	return reading{Requests: r.Requests - before.Requests - r.own, Proposals: r.Proposals - before.Proposals, CPU: r.CPU - before.CPU}
}

// A meter reads a server's own statistics.
type meter interface {
	read(ctx context.Context) (reading, error)
	version(ctx context.Context) (string, error)
}

type noMeter struct{}

func (noMeter) read(context.Context) (reading, error)   { return reading{}, nil }
func (noMeter) version(context.Context) (string, error) { return "", nil }

// etcdMeter reads /metrics. A request is a message that the gRPC server received.
type etcdMeter struct{ addr string }

func (m etcdMeter) read(ctx context.Context) (reading, error) {
	sums, err := scrape(ctx, "http://"+m.addr+"/metrics")
	return reading{
		Requests:  sums["grpc_server_msg_received_total"],
		Proposals: sums["etcd_server_proposals_committed_total"],
		CPU:       sums["process_cpu_seconds_total"],
	}, err
}

func (m etcdMeter) version(ctx context.Context) (string, error) {
	var answer struct{ EtcdServer string }
	err := getJSON(ctx, "http://"+m.addr+"/version", &answer)
	return answer.EtcdServer, err
}

// consulMeter reads the agent's telemetry, and Raft's last index. A request is one of
// the HTTP API that was answered: a blocking query counts when it is.
type consulMeter struct{ addr string }

func (m consulMeter) read(ctx context.Context) (reading, error) {
	sums, err := scrape(ctx, "http://"+m.addr+"/v1/agent/metrics?format=prometheus")
	if err != nil {
		return reading{}, err
	}
	index, err := m.agent(ctx)
	return reading{Requests: sums["consul_api_http_count"], Proposals: index.raft, CPU: sums["process_cpu_seconds_total"], own: 2}, err
}

type consulAgent struct {
	version string
	raft    float64
}

func (m consulMeter) agent(ctx context.Context) (consulAgent, error) {
	var answer struct {
		Config struct{ Version string }
		Stats  map[string]map[string]string
	}
	if err := getJSON(ctx, "http://"+m.addr+"/v1/agent/self", &answer); err != nil {
		return consulAgent{}, err
	}
	index, err := strconv.ParseFloat(answer.Stats["raft"]["last_log_index"], 64)
	return consulAgent{answer.Config.Version, index}, err
}

func (m consulMeter) version(ctx context.Context) (string, error) {
	agent, err := m.agent(ctx)
	return agent.version, err
}

// redisMeter reads INFO. A request is a read from a client's socket: commands that a
// client sends together count as one, and those within scripts do not count.
type redisMeter struct{ client *redis.Client }

func (m redisMeter) info(ctx context.Context) (string, error) { return m.client.Info(ctx).Result() }

func (m redisMeter) read(ctx context.Context) (reading, error) {
	info, err := m.info(ctx)
	if err != nil {
		return reading{}, err
	}
	r := reading{own: 1}
	for name, to := range map[string]*float64{
		"total_reads_processed": &r.Requests, "used_cpu_sys": &r.CPU, "used_cpu_user": &r.CPU,
	} {
		value, err := strconv.ParseFloat(redisField(info, name), 64)
		if err != nil {
			return reading{}, fmt.Errorf("bench: INFO of Redis: %s: %w", name, err)
		}
		*to += value
	}
	return r, nil
}

func (m redisMeter) version(ctx context.Context) (string, error) {
	info, err := m.info(ctx)
	return redisField(info, "redis_version"), err
}

// scrape returns the sums of all counters over their labels, by name. The count of a
// summary or histogram has _count at the end of its name.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	sums := make(map[string]float64)
	err := get(ctx, url, func(body io.Reader) error {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(body)
		for name, family := range families {
			for _, m := range family.GetMetric() {
				sums[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
				sums[name+"_count"] += float64(m.GetSummary().GetSampleCount() + m.GetHistogram().GetSampleCount())
			}
		}
		return err
	})
	return sums, err
}

func getJSON(ctx context.Context, url string, to any) error {
	return get(ctx, url, func(body io.Reader) error { return json.NewDecoder(body).Decode(to) })
}

func get(ctx context.Context, url string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("bench: %s answers %s", url, resp.Status)
	}
	return read(resp.Body)
}
