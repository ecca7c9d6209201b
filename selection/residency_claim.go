package selection

// Claim is one request's hold on the blocks it was booked with. Confirm works
// once, and only before the end; Release or Undo, whichever comes first, ends
// the claim. Later calls do nothing. The methods are safe for concurrent use,
// also after Close, and never wait for the store.
type Claim struct {
	cache *replicaCache
	slot  Slot
	born  uint32 // epoch of the booking: void if the replica was forgotten since
	nodes []*node

	promise promise // what was held at the booking, by capacity

	confirmed, ended bool // guarded by cache.mu
}

// Confirm says that the first token has come: the blocks have been computed.
func (c *Claim) Confirm() {
	if c.cache == nil {
		return
	}
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	if !c.ended && !c.void() {
		c.confirm()
		c.cache.publish()
	}
}

// Release says that the request has ended after so many generated tokens. The
// blocks count as used now: the generated tokens first, then from the prompt's
// end to its start, since engines evict in this order.
func (c *Claim) Release(generated int) {
	c.end(func() {
		c.confirm()
		c.renew(int64(max(generated, 0)))
	})
}

// Undo says that the attempt failed before its first token: the replica's cache
// is as if there had been no booking. After Confirm it is Release(0).
func (c *Claim) Undo() {
	c.end(func() {
		if c.confirmed {
			c.renew(0)
			return
		}
		for _, n := range c.nodes {
			c.unpin(n)
		}
	})
}

// end runs how unless the claim has ended or is void.
func (c *Claim) end(how func()) {
	if c.cache == nil {
		return
	}
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if !c.void() {
		how()
		c.cache.publish()
	}
	c.nodes = nil
}

// void tells that the replica lost its cache after the booking.
func (c *Claim) void() bool { return before(c.born, c.cache.floor.Load()) }

// confirm clears what is pending. The generated tokens that an earlier request
// left behind have become blocks of this prompt, so they count no longer.
func (c *Claim) confirm() {
	if c.confirmed {
		return
	}
	c.confirmed = true
	for i, n := range c.nodes {
		answered := i+1 < len(c.nodes) && !n.reply() && c.nodes[i+1].reply()
		c.prove(n, answered)
	}
}

func (c *Claim) prove(n *node, answered bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.holder(c.slot)
	if h == nil {
		return
	}
	h.pending = false
	if answered && h.tail > 0 {
		c.cache.recency.add(h.tailEpoch, -int64(h.tail))
		h.tail = 0
	}
}

// renew stamps generated tokens and all blocks as used now, and unpins them.
func (c *Claim) renew(generated int64) {
	re := &c.cache.recency
	tailEpoch := re.stamp(generated)
	for i := len(c.nodes) - 1; i >= 0; i-- {
		c.stamp(c.nodes[i])
	}
	if last := len(c.nodes) - 1; last >= 0 && generated > 0 {
		c.leaveTail(c.nodes[last], uint32(min(generated, maxTail)), tailEpoch)
	}
}

// maxTail bounds the generated tokens remembered at one key.
const maxTail = 1 << 31

// stamp renews a block's last use and takes one pin off.
func (c *Claim) stamp(n *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.holder(c.slot)
	if h == nil || h.pins == 0 {
		return
	}
	re := &c.cache.recency
	n.flags.Or(nodeUsed)
	h.pins--
	if h.pins > 0 {
		h.epoch = re.epoch()
		return
	}
	re.pinned -= int64(n.tokens)
	h.epoch = re.stamp(int64(n.tokens))
}

// leaveTail remembers the tokens generated after n. Those of an earlier answer
// stay counted where they are, since they take up the cache until evicted.
func (c *Claim) leaveTail(n *node, tokens, epoch uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.holder(c.slot); h != nil {
		h.tail, h.tailEpoch = tokens, epoch
	}
}

// unpin takes one pin off a block. After the last one the block is as old as
// it was; if it was proved by nobody, and unknown before, it is not held.
func (c *Claim) unpin(n *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.holder(c.slot)
	if h == nil || h.pins == 0 {
		return
	}
	h.pins--
	if h.pins > 0 {
		return
	}
	re := &c.cache.recency
	re.pinned -= int64(n.tokens)
	h.pending = false
	if !re.add(h.epoch, int64(n.tokens)) {
		n.remove(c.slot)
	}
}
