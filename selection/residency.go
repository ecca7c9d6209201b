package selection

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Residency is the index of which replica's KV cache holds which blocks of
// which prompts, modelled from what was sent where. It is safe for concurrent
// use. It reads no clock: what is held goes by tokens, and only the turnover by the
// times that it is told.
//
// Lock order: gate, a replica's cache, a node. The store is called under none
// but the first two.
type Residency struct {
	gate   sync.RWMutex // held for reading by whoever uses the store
	closed bool
	store  Store
	clock  clock
	memory *memory // of the store

	refused, evicted atomic.Uint64 // blocks without room, and let go to make room

	joining sync.Mutex // guards changes of caches
	caches  atomic.Pointer[[]*replicaCache]

	searches sync.Pool
}

// replicaCache models the KV cache of the replica in one slot.
type replicaCache struct {
	mu      sync.Mutex // guards recency and the claims of this replica
	recency recency
	joined  bool // guarded by Residency.joining

	// Published from recency for readers that do not lock.
	floor, oldest, maybe, sure atomic.Uint32
	full                       atomic.Bool
	edge                       atomic.Int64 // when what is evicted next was used last
	inUse                      atomic.Int64 // tokens that are pinned
}

// NewResidency returns an empty index that keeps its nodes in store and closes
// it in the end.
func NewResidency(store Store) *Residency {
	r := &Residency{store: store, memory: store.memory()}
	r.caches.Store(new([]*replicaCache))
	r.searches.New = func() any { return new(search) }
	return r
}

// Close frees the store. It waits for calls that are running; later ones find
// and record nothing. Claims may still be ended.
func (r *Residency) Close() {
	r.gate.Lock()
	defer r.gate.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	r.store.close()
}

// Join gives a replica a slot. Its capacity is the number of tokens its KV
// cache holds.
func (r *Residency) Join(capacity int) Slot {
	r.joining.Lock()
	defer r.joining.Unlock()
	caches := *r.caches.Load()
	slot := slices.IndexFunc(caches, func(c *replicaCache) bool { return !c.joined })
	if slot < 0 {
		slot = len(caches)
		c := &replicaCache{}
		c.recency.reset(1)
		caches = append(slices.Clip(caches), c)
		r.caches.Store(&caches)
	}
	caches[slot].joined = true
	r.SetCapacity(Slot(slot), capacity)
	return Slot(slot)
}

// Leave forgets what the replica holds and frees its slot. Claims of the slot
// that are still open end without effect.
func (r *Residency) Leave(slot Slot) {
	r.joining.Lock()
	defer r.joining.Unlock()
	if c := r.cache(slot); c != nil {
		r.Forget(slot)
		c.joined = false
	}
}

// Forget empties the model of a replica that lost its cache, as by a restart.
// Claims of the slot that are still open end without effect.
func (r *Residency) Forget(slot Slot) {
	c := r.cache(slot)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	floor := c.recency.epoch() + 1
	c.recency.reset(floor)
	c.floor.Store(floor)
	c.publish()
}

// SetCapacity corrects the number of tokens that the replica's KV cache holds.
func (r *Residency) SetCapacity(slot Slot, tokens int) {
	c := r.cache(slot)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recency.setCapacity(tokens)
	c.publish()
}

// Held returns the number of tokens that the replica is believed to hold.
func (r *Residency) Held(slot Slot) int {
	c := r.cache(slot)
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.recency.resident())
}

// InUse returns how many tokens of prompts the replica's open claims hold. What
// several share counts once.
func (r *Residency) InUse(slot Slot) int {
	c := r.cache(slot)
	if c == nil {
		return 0
	}
	return int(c.inUse.Load())
}

// Turnover returns how often per second the replica's cache is filled anew: one
// over the time that what it evicts next has not been used. It is 0 while the
// cache is not full, and at most 1, as where requests in flight take all of it.
func (r *Residency) Turnover(slot Slot, now time.Time) float64 {
	c := r.cache(slot)
	if c == nil || !c.full.Load() {
		return 0
	}
	return 1 / max(1, time.Duration(now.UnixNano()-c.edge.Load()).Seconds())
}

// Slots returns the length that Match needs for its result: one more than the
// highest slot given out so far.
func (r *Residency) Slots() int { return len(*r.caches.Load()) }

// cache returns the model of a slot, nil if the slot was never given out.
func (r *Residency) cache(slot Slot) *replicaCache {
	if caches := *r.caches.Load(); int(slot) < len(caches) {
		return caches[slot]
	}
	return nil
}

// publish makes the present horizon visible to readers.
func (c *replicaCache) publish() {
	z := c.recency.horizon()
	c.oldest.Store(z.oldest)
	c.maybe.Store(z.maybe)
	c.sure.Store(z.sure)
	c.full.Store(c.recency.full())
	c.inUse.Store(c.recency.pinned)
	c.edge.Store(c.recency.edge())
}

// horizon returns what publish stored last.
func (c *replicaCache) horizon() horizon {
	return horizon{floor: c.floor.Load(), oldest: c.oldest.Load(), maybe: c.maybe.Load(), sure: c.sure.Load()}
}
