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
	address              string
	slot                 Slot
	speed                Speed
	capacity             int  // tokens, as believed
	configured, reported int  // tokens, 0 when not told
	slots                int  // sequences admitted at once, 0 when there is no limit
	doubted              bool // may have lost its cache
	ledger               ledger
	failures             failures
	arrivals             decayed // bookings
	busy                 decayed // seconds of booked prefill
	seen                 time.Time
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
	if ahead := r.ledger.inFlight() - r.slots + 1; r.slots > 0 && ahead > 0 {
		wait = decode * float64(ahead) / float64(r.slots)
	}
	if context := r.ledger.context; context > 0 {
		if excess := context + tokens - r.capacity; excess > 0 {
			wait = max(wait, decode*float64(excess)/float64(context))
		}
	}
	return wait
}
