package machine

import "github.com/electkv/election/kv"

// An Effect is what a step asks of the runtime, or tells it.
type Effect struct {
	Kind    EffectKind
	Key     Key
	Request Request   // of Send and Hurry
	Record  kv.Record // what the effect is about
	Trust   Trust     // of Elected and Extended
	Cause   Cause     // of Ended
}

// An EffectKind is one kind of effect.
type EffectKind uint8

// The effects.
const (
	Send       EffectKind = iota // make a request, and answer once
	Hurry                        // give the request that is on its way so long, and no longer
	Elected                      // a term begins, with a record and the trust in it
	Extended                     // the trust in an owner's record reaches further
	Ended                        // the term has ended, or the heir's place
	Said                         // what the owner wants to say is published
	Unsaid                       // the store will never take that
	HandedOver                   // the heir has the leader's key
	Missing                      // the record was gone before its removal was requested
	Abandoned                    // a record that may be left is left to expire
	Failed                       // the store can never do what the campaign asks
	Refused                      // an attempt that was to be made once was refused, or unclear
	Examine                      // ask the health check of an owner
	Call                         // the heir is to be asked whether it is alive
	Left                         // the campaign is over
)

// A Cause is why an owner is one no more.
type Cause uint8

// The causes.
const (
	NoCause   Cause = iota
	Expired         // the lease was not refreshed in time
	Taken           // the record is gone, or another's
	Unhealthy       // the health check failed
	Sightless       // an heir cannot see the leader's key, or not claim it
	Resigned        // it was told to
)

func (c Cause) String() string {
	return [...]string{"none", "expired", "taken", "unhealthy", "sightless", "resigned"}[c]
}
