package selection

import "time"

// Book records that a request with these blocks is sent to the replica now. Until
// its claim ends they are pinned: no eviction touches them. Blocks that the
// replica does not surely hold are pending until the first token. The next
// Match sees the booking.
//
// When the index has no room left, the end of the chain goes unrecorded.
// Book never returns nil.
func (r *Residency) Book(now time.Time, slot Slot, blocks []Block) *Claim {
	c := r.cache(slot)
	if c == nil {
		return &Claim{ended: true}
	}
	r.gate.RLock()
	defer r.gate.RUnlock()
	if r.closed {
		return &Claim{ended: true}
	}
	b := booking{residency: r, cache: c, slot: slot}
	r.makeRoom(len(blocks))
	nodes := b.resolve(blocks)
	claim := b.pin(now, blocks, nodes)
	r.enter(b.fresh)
	return claim
}

// booking is the work of one call of Book.
type booking struct {
	residency *Residency
	cache     *replicaCache
	slot      Slot
	horizon   horizon
	fresh     []*node // made by this call
	promising promising
}

// resolve finds or makes the nodes of blocks, up to where room ends.
func (b *booking) resolve(blocks []Block) []*node {
	nodes := make([]*node, 0, len(blocks))
	for i := range blocks {
		n := b.node(blocks, i)
		if n == nil {
			b.residency.refused.Add(uint64(len(blocks) - i))
			break
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// node returns the node for blocks[i], nil if there is no room for a new one.
func (b *booking) node(blocks []Block, i int) *node {
	r := b.residency
	if n := r.store.get(blocks[i].Key); n != nil && !n.gone() {
		return n
	}
	fresh := newNode(blocks, i)
	bytes := r.memory.size(fresh)
	if !r.memory.reserve(bytes) {
		return nil
	}
	n := r.store.add(fresh)
	if n != fresh {
		r.memory.free(bytes)
		return n
	}
	b.fresh = append(b.fresh, fresh)
	return n
}

// pin adds the pins of one request to nodes.
func (b *booking) pin(now time.Time, blocks []Block, nodes []*node) *Claim {
	c := b.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recency.now = now.UnixNano()
	claim := &Claim{cache: c, slot: b.slot, born: c.recency.epoch()}
	b.horizon = c.horizon()
	b.promising.ages = c.recency.ages()
	for i := 0; i < len(nodes); i++ {
		switch b.pinNode(nodes[i]) {
		case pinGone:
			if nodes[i] = b.node(blocks, i); nodes[i] != nil {
				i--
				continue
			}
			fallthrough
		case pinNoRoom:
			b.residency.refused.Add(uint64(len(nodes) - i))
			nodes = nodes[:i]
		}
	}
	c.publish()
	claim.nodes = nodes
	claim.promise = b.promising.done()
	return claim
}

type pinResult int

const (
	pinned pinResult = iota
	pinGone
	pinNoRoom
)

// pinNode adds a pin to one node.
func (b *booking) pinNode(n *node) pinResult {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone() {
		return pinGone
	}
	i, ok := n.search(b.slot)
	if !ok {
		if !b.residency.fit(n) {
			return pinNoRoom
		}
		i, _ = n.search(b.slot) // fit may have moved it
	}
	had := levelAbsent
	if ok {
		h := &n.holders[i]
		had = b.horizon.level(h)
		b.promising.block(n, h, b.horizon.pinned(h))
	} else {
		b.promising.block(n, nil, false)
	}
	h := b.hold(n, i, ok)
	if had < levelPending {
		h.pending = true
	}
	h.pins++
	n.flags.Or(nodeUsed)
	return pinned
}

// hold returns the slot's holder at place i with its tokens counted as pinned.
func (b *booking) hold(n *node, i int, ok bool) *holder {
	re := &b.cache.recency
	var h *holder
	if ok {
		h = &n.holders[i]
	} else {
		h = n.insert(i, holder{slot: b.slot, epoch: b.horizon.oldest - 1})
	}
	if !b.horizon.pinned(h) {
		h.pins, h.pending, h.pinned = 0, false, re.epoch()
		re.add(h.epoch, -int64(n.tokens))
		re.pinned += int64(n.tokens)
	}
	return h
}
