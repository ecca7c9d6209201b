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
		r.doubted = false
		f.residency.Forget(r.slot)
	}
	if Known(report.CapacityTokens) {
		r.reported = int(min(report.CapacityTokens, maxCapacity))
		f.resize(r, 0)
	}
	if Known(report.Slots) {
		r.slots = int(min(report.Slots, math.MaxInt32))
	}
}

// Distrust says that a replica may have lost its cache, as when it fails its
// health checks. What it was given before counts for little until a hit is
// confirmed.
func (f *Fleet) Distrust(address string) {
	f.mu.Lock()
	r := f.replicas[address]
	f.mu.Unlock()
	if r != nil {
		f.doubt(r)
	}
}

// Forget says that a replica has lost its cache. It reports false when the
// replica is unknown.
func (f *Fleet) Forget(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.replicas[address]
	if r == nil {
		return false
	}
	r.doubted = false
	f.residency.Forget(r.slot)
	return true
}

// resize gives the residency model the size that is believed in: the one that
// the operator configured, else the one that the replica reports, else the usual.
func (f *Fleet) resize(r *replica, configured int) {
	if configured > 0 {
		r.configured = configured
	}
	capacity := r.configured
	if capacity == 0 {
		capacity = r.reported
	}
	if capacity == 0 {
		capacity = DefaultCapacity
	}
	if capacity != r.capacity {
		r.capacity = capacity
		f.residency.SetCapacity(r.slot, capacity)
	}
}
