// Package electionhttp answers over HTTP what a candidate is at this moment: to load balancers
// and orchestrators, to programs in any language, and to people with curl.
//
//	handler, err := electionhttp.New(candidate, store, nil)
//	mux.Handle("/election/", http.StripPrefix("/election", handler))
//
// # Answers
//
//	/leader    200 while this process leads, else 503
//	/heir      200 while it is next
//	/standby   200 while it competes and does not lead
//	/livez     503 if its work goes on although another may lead: kill it
//	/readyz    200 if the store has answered within a TTL; with ?leader, if it leads too
//	/          {"name": ID} of the leader; an empty ID if nobody leads
//	/status    the JSON of elect status -o json, and self
//	/history   the last terms, as elect history -o json has them
//	/events    server-sent events of what changes
//
// All of these take GET, HEAD and, except /events, OPTIONS. The first five answer with what this
// process is, as JSON, or as text to those who accept text/plain:
//
//	{"id":"host-7","role":"leader","token":42,"remaining":8.912}
//
// Errors are {"error": why}. Nothing may be cached.
//
// # What a 200 of /leader means
//
// The answer is [election.Candidate.Status], which reads the clock: it is right even if it is the
// first answer of a process that was frozen, or whose host was asleep. A 200 was true at some
// moment between the request and the answer. So give the request a time limit, and treat a missing
// answer as a no. Remaining is for how many seconds the lease could be trusted then without
// another refresh: it is not promised, since the leader may resign. What a client writes after
// the answer is protected by the token alone.
//
// # What is written
//
// Only POST /resign and POST /transfer?to=ID write to the store. They are refused unless [Options]
// has a token. /resign asks this process to step down, and is refused by one that does not lead,
// because a hook that runs before each process stops must not depose another. With ?any it asks the
// leader, whichever that is. /transfer always asks the leader, since it says who is to lead. Both
// need Options.Requests or a Succession in the leader, as [election.RequestResign] does. The answer
// comes when it is done, with the leader's name as / has it.
//
// # Cost
//
// The first five paths cost no request, except /readyz (see below). / reads the store unless this
// process leads, and /status always does; requests at the same time share one read, which begins
// after the last of them came. /readyz reads the store only if nothing else has been heard from it
// for half a TTL, and at most once in a third of a TTL. /events costs two watches, however many
// follow it.
package electionhttp
