package selection

import "time"

const (
	// DefaultCapacity is the assumed size of a replica's KV cache in tokens
	// until it is configured or reported: about an 8B model on one 80 GB GPU.
	DefaultCapacity = 400_000
	// rateHalfLife is over how long arrivals and prefill work are averaged.
	rateHalfLife = 20 * time.Second
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

	slots    slots
	counters counters
	tally    tally
	ledger   ledger
	foreign  foreign
	failures failures
	arrivals decayed // bookings
	busy     decayed // seconds of booked prefill
}

// arrivalRate is the rate of bookings per second.
func (r *replica) arrivalRate(now time.Time) float64 {
	return r.arrivals.get(now, rateHalfLife) / meanLife(rateHalfLife)
}

// utilisation is the share of time spent on prefill, 1 when more was booked
// than the replica can do.
func (r *replica) utilisation(now time.Time) float64 {
	return min(1, r.busy.get(now, rateHalfLife)/meanLife(rateHalfLife))
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
