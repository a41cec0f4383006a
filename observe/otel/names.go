package electionotel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/electkv/election"
)

// The attributes. Those of metrics come first.
const (
	nameKey      = attribute.Key("election.name")
	roleKey      = attribute.Key("election.role")
	reasonKey    = attribute.Key("election.reason")
	outcomeKey   = attribute.Key("election.outcome")
	operationKey = attribute.Key("election.store.operation")

	candidateKey = attribute.Key("election.candidate.id")
	tokenKey     = attribute.Key("election.token")
	safeKey      = attribute.Key("election.store.safe")
	releaseKey   = attribute.Key("election.release")
	drainKey     = attribute.Key("election.drain.duration")
	heirKey      = attribute.Key("election.heir.id")
	heirTokenKey = attribute.Key("election.heir.token")
	errorKey     = attribute.Key("error.type")
)

// signed returns a token as OpenTelemetry takes it. Stores count in 63 bits.
func signed(token uint64) int64 { return int64(token) } //nolint:gosec // see above

// labels returns the attributes of a metric of a candidate.
func (t *Telemetry) labels(i election.HookInfo, more ...attribute.KeyValue) metric.MeasurementOption {
	return labels(t.group(i.Candidate.Name()), more...)
}

// labels returns the attributes of a metric of a group of elections.
func labels(group string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, nameKey.String(group))...))
}
