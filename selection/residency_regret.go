package selection

import (
	"sync/atomic"
	"time"
)

const (
	// regretDecay is the number of epochs, each a bucket's share of the
	// capacity, in which old counts fall to 1/e: the window of ghosts.
	regretDecay = window * bucketsPerCapacity
	// regretPrior is the share of the capacity that must have been evicted
	// before a replica's own counts weigh as much as the fleet's.
	regretPrior = 8
	// maxRegret is the most that a share is taken to be.
	maxRegret = 0.98
)

// regret counts evicted tokens and those asked for again, with decay.
type regret struct {
	evicted, asked atomic.Int64
}

func (g *regret) add(evicted, asked int64) {
	g.evicted.Add(evicted)
	g.asked.Add(asked)
}

// share is asked/evicted, drawn towards prior as if weight further tokens had
// been evicted and asked for again at that rate.
func (g *regret) share(prior, weight float64) float64 {
	share := (float64(g.asked.Load()) + prior*weight) / (float64(g.evicted.Load()) + weight)
	return min(max(share, 0), maxRegret)
}

// Regret returns the share of a replica's evicted tokens that are asked for
// again when no replica holds them, in [0,1). It is 0 while the replica's cache
// is not full, since then nothing is evicted.
//
//	r = (asked + w*fleet) / (evicted + w),  w = capacity/8
//
// Both counts are tokens and fade by 1/e over two capacities of tokens used on
// the replica. Evicted counts what bookings, once confirmed, and answers add to
// a full cache. Asked counts the blocks of confirmed bookings, on any replica,
// that this one is the first to remember as a ghost and none holds; fleet is
// the same share over all replicas, drawn to 0 with the same weight w.
func (r *Residency) Regret(slot Slot) float64 {
	c := r.cache(slot)
	if c == nil || !c.full.Load() {
		return 0
	}
	weight := max(float64(c.capacity.Load()), 1) / regretPrior
	return c.regret.share(r.fleet.share(0, weight), weight)
}

// FleetRegret returns the share of the tokens evicted by all replicas that are
// asked for again when no replica holds them, in [0,1), as it concerns a replica:
// 0 while its cache is not full.
func (r *Residency) FleetRegret(slot Slot) float64 {
	c := r.cache(slot)
	if c == nil || !c.full.Load() {
		return 0
	}
	return r.fleet.share(0, max(float64(c.capacity.Load()), 1)/regretPrior)
}

// Turnover returns how often per second the replica's cache is filled anew: one
// over the time that what it evicts next has not been used. It is 0 while the
// cache is not full, and at most 1.
func (r *Residency) Turnover(slot Slot, now time.Time) float64 {
	c := r.cache(slot)
	if c == nil || !c.full.Load() {
		return 0
	}
	return 1 / max(1, time.Duration(now.UnixNano()-c.edge.Load()).Seconds())
}

// regret counts for a replica and for the fleet.
func (r *Residency) regret(c *replicaCache, evicted, asked int64) {
	c.regret.add(evicted, asked)
	r.fleet.add(evicted, asked)
}

// decay lets the replica's counts fade by a number of epochs.
func (r *Residency) decay(c *replicaCache, epochs uint32) {
	for range min(epochs, 8*regretDecay) {
		r.regret(c, -c.regret.evicted.Load()/regretDecay, -c.regret.asked.Load()/regretDecay)
	}
}

// forgive takes all of the replica's counts out.
func (r *Residency) forgive(c *replicaCache) {
	r.regret(c, -c.regret.evicted.Load(), -c.regret.asked.Load())
}
