// Package electionotel tells OpenTelemetry what elections do: in metrics, and in spans.
//
//	telemetry, err := electionotel.New(nil) // for the global providers
//	…
//	candidate, err := election.New(store, "billing", &election.Options{Hooks: telemetry.Hooks()})
//
// One Telemetry serves all candidates of a process. Beside other hooks, use
// [election.JoinHooks].
//
// # Metrics
//
// Gauges and up-down counters are computed when metrics are collected, from
// [election.Candidate.Status], so none is stale. A candidate is shown from its first campaign
// on, for as long as the program keeps it.
//
//	election.is_leader                {candidate}  up-down counter: candidates that lead
//	election.role                     {candidate}  up-down counter, by election.role
//	election.token                    {token}      gauge: fencing token, only while it leads
//	election.trust.remaining          s            gauge: of the lease, only while it leads
//	election.store.contact.timestamp  s            gauge: when the store last answered (Unix time)
//	election.terms                    {term}       counter: terms that began
//	election.terms_ended              {term}       counter, by election.reason
//	election.store.errors             {error}      counter, by election.store.operation
//	election.hook.calls_dropped       {call}       counter: what was not counted, because a hook blocked
//	election.term.duration            s            histogram
//	election.campaign.duration        s            histogram, of campaigns that won a term
//	election.drain.duration           s            histogram: how long work outlived its context
//	election.refresh.duration         s            histogram, by election.outcome
//	election.refresh.margin           s            histogram: trust left when a refresh had succeeded
//
// The values are those of [election.Role], [election.Reason], [election.Op] and
// [election.Outcome]. All but election.hook.calls_dropped also have the attribute election.name.
// Go's SDK takes 2,000 combinations for an instrument, so set Options.Group in a process
// with hundreds of elections or more.
//
// # Spans
//
//	election.campaign         a campaign; its parent is the span in the context of Run or Campaign
//	election.release          from the end of a term until nothing is left of it
//	election.hand_over        the same, if an heir took over
//	election.store.OPERATION  a request to the store, for example election.store.create
//
// A term has no span, since it may last for weeks. Each span that belongs to a term has a trace of
// its own, with a link to the campaign: its release, each refresh of its lease or of an heir's
// place, and each request while it lasts. Requests are children of the campaign, or of the
// release, while that is under way, and of the span of a call such as Term.Transfer.
//
// The parent's sampling decision and your sampler count, as for any span. A sampler that drops
// election.store.refresh saves most of them. For no spans, give Options.TracerProvider that of
// package go.opentelemetry.io/otel/trace/noop.
package electionotel
