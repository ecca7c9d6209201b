package selection

// Doubt says that the replica may have lost its cache: from now on what it was
// given before counts as possibly held only, until Believe or Disbelieve.
func (r *Residency) Doubt(slot Slot) {
	r.change(slot, (*recency).doubt)
}

// Believe ends a doubt: the replica has kept its cache.
func (r *Residency) Believe(slot Slot) {
	r.change(slot, (*recency).believe)
}

// Disbelieve ends a doubt: the replica has lost what it was given before it.
func (r *Residency) Disbelieve(slot Slot) {
	r.change(slot, (*recency).disbelieve)
}

func (r *Residency) change(slot Slot, f func(*recency)) {
	c := r.cache(slot)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.recency)
	c.publish()
}

func (r *recency) doubt() {
	r.advance()
	r.doubted, r.suspect = true, r.epoch()
}

func (r *recency) believe() { r.doubted = false }

// disbelieve forgets the buckets from before the doubt.
func (r *recency) disbelieve() {
	if !r.doubted {
		return
	}
	r.doubted = false
	old := 0
	for old < len(r.buckets)-1 && before(r.buckets[old].start, r.suspect) {
		r.total -= r.buckets[old].tokens
		old++
	}
	r.buckets = r.buckets[:copy(r.buckets, r.buckets[old:])]
}
