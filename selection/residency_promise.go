package selection

// ages are the epochs from which on blocks are held if the capacity is one of
// several, smallest capacity first, so epochs fall.
type ages struct {
	first int
	since [tries]uint32
}

// ages returns the epochs for the capacities around the present one.
func (r *recency) ages() ages {
	a := ages{first: max(0, capacityNear(float64(r.capacity))-triesBelow)}
	none := r.epoch() + 1
	newer, i, since := r.pinned, len(r.buckets)-1, none
	for k := range a.since {
		for ; i >= 0 && float64(newer) <= capacityAt(a.first+k); i-- {
			since = r.buckets[i].start
			newer += r.buckets[i].tokens
		}
		a.since[k] = since
	}
	return a
}

// class is the number of the smallest capacity that holds a block last used in
// epoch, tries if none does.
func (a *ages) class(epoch uint32) int {
	k := 0
	for k < tries && before(epoch, a.since[k]) {
		k++
	}
	return k
}

// promising finds out, along a chain that is being booked, what is promised
// under each capacity.
type promising struct {
	ages    ages
	promise promise
	class   int    // largest so far: what follows a hole is worth nothing
	tokens  uint32 // up to the last block

	covered uint32 // generated tokens that the next blocks may match
	tail    int    // their class
}

// block takes in the next block before it is booked. Its holder is nil if the
// replica is not known to have had it.
func (p *promising) block(n *node, h *holder, pinned bool) {
	covered := p.cover(n, h)
	class := tries
	switch {
	case pinned:
		class = 0
	case h != nil:
		class = p.ages.class(h.epoch)
	}
	if class > p.tail && covered > 0 {
		p.advance(p.tail, covered)
		if covered == n.tokens {
			return
		}
	}
	if n.tokens > 0 { // hints have none
		p.advance(class, n.tokens-covered)
	}
}

// cover returns how many of a block's tokens were generated before, and
// notes what was generated after it.
func (p *promising) cover(n *node, h *holder) (covered uint32) {
	if n.reply() {
		covered = min(n.tokens, p.covered)
		p.covered -= covered
		return covered
	}
	p.covered = 0
	if h != nil && h.tail > 0 {
		p.covered, p.tail = h.tail, p.ages.class(h.tailEpoch)
	}
	return 0
}

func (p *promising) advance(class int, tokens uint32) {
	for ; p.class < class; p.class++ {
		p.promise.held[p.class] = p.tokens
	}
	p.tokens += tokens
}

// done is the promise over all blocks.
func (p *promising) done() promise {
	p.advance(tries, 0)
	p.promise.first = p.ages.first
	return p.promise
}
