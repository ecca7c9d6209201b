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
	turnover  float64 // of a shared cache, per second, at the last survey
}

// contends tells whether what a replica is given displaces what others want: it
// keeps prefixes, in a cache that all requests share.
func (r *replica) contends() bool { return !r.sequences.known() && r.trust != (trust{}) }

// wait is how long a prefill would wait for those before it, in seconds.
func (r *replica) wait(now time.Time) float64 {
	first, others := r.ledger.wait(now)
	return first + others*r.queuePace()
}

// queuePace is how many times as long as the prefills in it the queue has taken
// lately. Whatever holds an engine up shows in it, such as a full batch, of which a
// router is told nothing.
func (r *replica) queuePace() float64 { return max(1, r.paces.queue.factor(1, leastPrefill)) }
