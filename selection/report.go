package selection

import (
	"math"
	"time"
)

// Report is what a replica says of itself at one time. A quantity that it does
// not tell is NaN, counters count since its start.
type Report struct {
	// At is when the replica was asked.
	At time.Time
	// Restarted says that it started anew since the report before.
	Restarted bool
	// Sleeping says that it holds no KV cache at present.
	Sleeping bool
	// NoPrefixCaching says that it reuses no prefixes.
	NoPrefixCaching bool
	// PrivateSlots says that each of its Slots keeps the sequence it served last
	// and shares nothing with the others, as with llama.cpp.
	PrivateSlots bool

	// Running and Waiting are numbers of requests.
	Running, Waiting float64
	// CapacityTokens is the size of its KV cache.
	CapacityTokens float64
	// Slots is how many requests it admits to run at the same time.
	Slots float64
	// PrefixQueries and PrefixHits count prompt tokens looked up and found in its cache.
	PrefixQueries, PrefixHits float64
}

// Known tells whether a quantity of a report was told.
func Known(quantity float64) bool { return !math.IsNaN(quantity) }

// Report takes in what a replica says of itself. Replicas that have not been a
// candidate yet join. Reports of one replica come in the order of time.
func (f *Fleet) Report(now time.Time, address string, report *Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.join(address, now)
	if report.Restarted || report.Sleeping {
		f.forget(r)
	}
	if report.Restarted {
		r.paces, r.trust, r.slots, r.belief = paces{}, usualTrust, slots{}, capacityBelief{}
	}
	if report.NoPrefixCaching {
		r.trust = trust{}
	}
	if Known(report.Slots) {
		r.slots.reported = int(min(report.Slots, math.MaxInt32))
	}
	r.resizeSequences(report)
	if Known(report.CapacityTokens) {
		r.report(int(min(report.CapacityTokens, maxCapacity)))
	}
	f.resize(r)
	own := r.ledger.inFlightSince(report.At) // what has ended meanwhile may be counted still
	if all, ok := r.foreign.report(report, own); ok {
		r.rates.report(now, float64(own), all)
	}
	f.learnCounters(r, report, r.rates.foreign())
}

// Distrust says that a replica may have lost its cache, as when it fails its
// health checks. What it was given before counts for little until a hit is
// confirmed.
func (f *Fleet) Distrust(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.replicas[address]; r != nil {
		f.doubt(r)
	}
}

// Forget says that a replica has lost its cache. It reports false when the
// replica is unknown.
func (f *Fleet) Forget(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.replicas[address]
	if r != nil {
		f.forget(r)
	}
	return r != nil
}

// SetSpeed tells how fast a replica is, which is then not learned.
func (f *Fleet) SetSpeed(now time.Time, address string, speed Speed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.join(address, now)
	r.speed, r.pinned = speed, true
}

// resizeSequences notes whether the replica has private slots, and how many. A
// capacity that was learned before that is known means nothing.
func (r *replica) resizeSequences(report *Report) {
	known := r.sequences.known()
	if !report.PrivateSlots {
		r.sequences.resize(0)
	} else if Known(report.Slots) {
		r.sequences.resize(r.slots.reported)
	}
	if r.sequences.known() != known {
		r.learned, r.belief = 0, capacityBelief{}
	}
}

// report notes the capacity that the replica reports. A new one is believed
// over what was learned before.
func (r *replica) report(capacity int) {
	if capacity != r.reported {
		r.reported, r.learned = capacity, 0
		r.belief = capacityBelief{}
	}
}

// configure notes the capacity that the operator configured.
func (r *replica) configure(capacity int) {
	if capacity > 0 && capacity != r.configured {
		r.configured, r.learned = capacity, 0
		r.belief = capacityBelief{}
	}
}

// resize gives the residency model the capacity that is believed in: the one
// that answers have taught, else the one that the operator configured, else the
// one that the replica reports, else the usual.
func (f *Fleet) resize(r *replica) {
	capacity, _ := r.believed()
	if capacity != r.capacity {
		r.capacity = capacity
		f.residency.SetCapacity(r.slot, capacity)
	}
}

// believed is the capacity that is believed in, in tokens, and where it is from.
func (r *replica) believed() (tokens int, source string) {
	switch {
	case r.learned > 0:
		return r.learned, "learned"
	case r.configured > 0:
		return r.configured, "configured"
	case r.reported > 0:
		return r.reported, "reported"
	default:
		return DefaultCapacity, "assumed"
	}
}
