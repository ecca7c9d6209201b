package selection

import "time"

const (
	// DefaultCapacity is the assumed size of a replica's KV cache in tokens
	// until it is configured or reported: about an 8B model on one 80 GB GPU.
	DefaultCapacity = 400_000
)

// replica is what a fleet knows about one upstream.
type replica struct {
	address string
	slot    Slot
	seen    time.Time

	speed  Speed // usual, or known when pinned
	pinned bool
	paces  paces

	capacity                      int // tokens, as believed
	configured, reported, learned int // tokens, 0 when not known
	belief                        capacityBelief

	doubted    bool // may have lost its cache
	generation int  // counts the occasions on which promises lost their meaning
	trust      trust

	slots     slots
	sequences sequences // where slots are private
	counters  counters
	tally     tally
	ledger    ledger
	foreign   foreign
	failures  failures
	rates     rates
	turnover  float64 // of the cache, per second, at the last decision
}

// admission is how long a sequence of the given length waits for a place in
// the running batch, in seconds, when a sequence decodes for decode seconds.
// Running sequences are taken to end evenly spread over that time, and to
// give back their share of the cache then.
func (r *replica) admission(tokens int, decode float64) float64 {
	wait := 0.0
	limit := r.slots.limit()
	if ahead := r.ledger.inFlight() - limit + 1; limit > 0 && ahead > 0 {
		wait = decode * float64(ahead) / float64(limit)
	}
	if context := r.ledger.context; context > 0 {
		if excess := context + tokens - r.capacity; excess > 0 {
			wait = max(wait, decode*float64(excess)/float64(context))
		}
	}
	return wait
}
