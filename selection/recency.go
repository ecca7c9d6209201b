package selection

import "sort"

const (
	// bucketsPerCapacity sets the resolution of stack distances: a bucket
	// closes when it has been given this share of the capacity.
	bucketsPerCapacity = 64
	// window is how far back stamps are remembered, in capacities. What lies
	// between one and window capacities back is a ghost.
	window = 2
	// maxBuckets leaves room above the 2*window*bucketsPerCapacity buckets
	// that merging can leave, so that merging is rare.
	maxBuckets = 5 * window * bucketsPerCapacity / 2
	// Between these shares of the capacity a block may or may not be evicted.
	sureShare, maybeShare = 0.95, 1.05
	// maxCapacity keeps sums of tokens far from overflow.
	maxCapacity = 1 << 40
)

// recency models the eviction order of one replica's KV cache. An engine that
// evicts the least recently used block holds a block while its stack distance,
// the distinct tokens used since its own last use, stays below the capacity.
// Blocks of running requests are pinned and come before everything else.
//
// Tokens are counted per bucket of use, newest last. Using a block again moves
// its tokens to the newest bucket, so the sum over the newer buckets is the
// stack distance. A bucket covers a range of epochs: neighbours that lost most
// of their tokens to newer ones are merged, so that a bounded number of buckets
// covers window capacities of distinct tokens, however much is reused.
type recency struct {
	capacity int64
	pinned   int64 // tokens of running requests, in no bucket
	total    int64 // tokens in all buckets
	gained   int64 // tokens stamped since the newest bucket was opened
	buckets  []bucket

	now int64 // of the last booking, in nanoseconds

	doubted bool // what was used before suspect is held possibly at best
	suspect uint32
}

type bucket struct {
	start  uint32 // first epoch covered; epochs up to the next bucket's start belong here
	tokens int64
	began  int64 // when it was opened, in nanoseconds
}

// before orders epochs, which wrap around.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// reset forgets everything and goes on with the given epoch.
func (r *recency) reset(epoch uint32) {
	r.pinned, r.total, r.gained, r.doubted = 0, 0, 0, false
	r.buckets = append(r.buckets[:0], bucket{start: epoch, began: r.now})
}

func (r *recency) setCapacity(tokens int) {
	r.capacity = min(max(int64(tokens), 0), maxCapacity)
}

// epoch is the stamp given to blocks used now.
func (r *recency) epoch() uint32 { return r.buckets[len(r.buckets)-1].start }

// full tells that inserting tokens evicts others.
func (r *recency) full() bool { return r.pinned+r.total >= r.capacity }

// resident is the number of tokens the replica holds, ghosts excluded.
func (r *recency) resident() int64 {
	return min(r.pinned+r.total, max(r.capacity, r.pinned))
}

// stamp counts tokens as used now and returns their epoch.
func (r *recency) stamp(tokens int64) uint32 {
	newest := &r.buckets[len(r.buckets)-1]
	if newest.began == 0 { // the first one of all
		newest.began = r.now
	}
	epoch := newest.start
	newest.tokens += tokens
	r.total += tokens
	r.gained += tokens
	if r.gained >= max(r.capacity/bucketsPerCapacity, 1) {
		r.advance()
	}
	return epoch
}

// advance opens a new bucket, and keeps the number of buckets bounded.
func (r *recency) advance() {
	r.gained = 0
	r.dropOld()
	if len(r.buckets) >= maxBuckets {
		r.merge()
	}
	r.buckets = append(r.buckets, bucket{start: r.epoch() + 1, began: r.now})
}

// dropOld forgets buckets that lie more than window capacities back.
func (r *recency) dropOld() {
	old := 0
	for old < len(r.buckets)-1 && r.total-r.buckets[old].tokens > window*r.capacity {
		r.total -= r.buckets[old].tokens
		old++
	}
	if old > 0 {
		r.buckets = r.buckets[:copy(r.buckets, r.buckets[old:])]
	}
}

// merge joins neighbours as long as the result is no larger than a bucket's
// regular share. Afterwards two neighbours always exceed it together, which
// bounds their number.
func (r *recency) merge() {
	share := r.capacity / bucketsPerCapacity
	last := 0
	for _, b := range r.buckets[1:] {
		if r.buckets[last].tokens+b.tokens <= share && !r.borders(b) {
			if r.buckets[last].tokens == 0 {
				r.buckets[last].began = b.began
			}
			r.buckets[last].tokens += b.tokens
			continue
		}
		last++
		r.buckets[last] = b
	}
	r.buckets = r.buckets[:last+1]
}

// borders tells that b is the first bucket free of a doubt, which must not be
// merged with one that is not.
func (r *recency) borders(b bucket) bool { return r.doubted && b.start == r.suspect }

// find returns the index of the bucket that covers epoch, -1 if it is forgotten.
func (r *recency) find(epoch uint32) int {
	return sort.Search(len(r.buckets), func(i int) bool { return before(epoch, r.buckets[i].start) }) - 1
}

// add changes the tokens last used in epoch. It reports false if the epoch is
// forgotten and there is nothing to change.
func (r *recency) add(epoch uint32, tokens int64) bool {
	i := r.find(epoch)
	if i < 0 {
		return false
	}
	r.buckets[i].tokens += tokens
	r.total += tokens
	return true
}

// horizon returns the epochs at which blocks stop being surely held, possibly
// held, and remembered.
func (r *recency) horizon() horizon {
	none := r.epoch() + 1
	h := horizon{oldest: r.buckets[0].start, sure: none, maybe: none}
	sure, maybe := int64(sureShare*float64(r.capacity)), int64(maybeShare*float64(r.capacity))
	newer := r.pinned
	for i := len(r.buckets) - 1; i >= 0 && newer <= maybe && r.capacity > 0; i-- {
		b := r.buckets[i]
		h.maybe = b.start
		newer += b.tokens
		if newer <= sure {
			h.sure = b.start
		}
	}
	if r.doubted && before(h.sure, r.suspect) {
		h.sure = r.suspect
	}
	return h
}

// edge is when what is evicted next was used last: the oldest tokens within the
// capacity. It is now where those in use take all of it.
func (r *recency) edge() int64 {
	at, newer := r.now, r.pinned
	for i := len(r.buckets) - 1; i >= 0 && newer <= r.capacity && r.capacity > 0; i-- {
		if r.buckets[i].tokens > 0 {
			at = r.buckets[i].began
		}
		newer += r.buckets[i].tokens
	}
	return at
}
