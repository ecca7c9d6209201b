package selection

import "sync"

const (
	// A booking visits up to this many nodes for each node it makes, and some
	// more, so that nodes leave soon after their time.
	visitsPerNode, visitsPerBooking = 4, 8
	// With little memory left it may visit more, so that every node has been
	// visited before none is left.
	visitsPerNodeWhenShort = 16
	// A booking that has let go twice what it made, and some more, is done.
	leavesPerNode = 2
)

// clock is the list of all nodes, in the order of their next visit.
type clock struct {
	mu          sync.Mutex
	first, last *node
	length      int
}

func (c *clock) push(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.first = n
	} else {
		c.last.next = n
	}
	c.last = n
	c.length++
}

// pop returns nil when the clock is empty.
func (c *clock) pop() *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.first
	if n == nil {
		return nil
	}
	if c.first = n.next; c.first == nil {
		c.last = nil
	}
	n.next = nil
	c.length--
	return n
}

func (c *clock) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.length
}

// enter puts new nodes on the clock and visits old ones in proportion.
func (r *Residency) enter(fresh []*node) {
	for _, n := range fresh {
		r.clock.push(n)
	}
	need := r.memory.need()
	visits := visitsPerNode
	if need > needNothing {
		visits = visitsPerNodeWhenShort
	}
	r.sweep(visitsPerBooking+visits*len(fresh), visitsPerBooking+leavesPerNode*len(fresh), need)
}

// makeRoom lets nodes go until this many new ones fit, or enough visits were in
// vain.
func (r *Residency) makeRoom(blocks int) {
	if r.memory.limit == 0 {
		return
	}
	bytes := int64(blocks) * (nodeBytes + holderBytes + r.memory.overhead)
	for i := 0; i < visitsPerNodeWhenShort && r.memory.room() < bytes; i++ {
		r.sweep(blocks, blocks, needUnused)
	}
	if r.memory.limit-r.memory.used.Load() < bytes {
		r.store.flush()
	}
}

// sweep visits up to so many nodes, until so many of them have left the index.
func (r *Residency) sweep(visits, leaves int, need need) {
	for visits = min(visits, r.clock.len()); visits > 0 && leaves > 0; visits-- {
		n := r.clock.pop()
		if n == nil {
			return
		}
		if r.leaves(n, need) {
			r.store.delete(n)
			leaves--
		} else {
			r.clock.push(n)
		}
	}
}

// leaves decides whether n leaves the index, and marks it as gone.
func (r *Residency) leaves(n *node, need need) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	best, pinned := r.standing(n)
	used := n.flags.And(^uint32(nodeUsed))&nodeUsed != 0
	stays := pinned
	switch need {
	case needNothing:
		stays = best > levelAbsent
	case needGhosts:
		stays = best > levelGhost
	case needUnused:
		stays = pinned || used && best > levelGhost
	}
	if stays && !n.gone() {
		return false
	}
	if best > levelGhost {
		r.evicted.Add(1)
	}
	n.flags.Or(nodeGone)
	r.memory.leave(n)
	return true
}

// standing drops the void holders of n and returns the best level of the rest.
func (r *Residency) standing(n *node) (best level, pinned bool) {
	caches := *r.caches.Load()
	keep := n.holders[:0]
	for i := range n.holders {
		h := n.holders[i]
		z := caches[h.slot].horizon()
		l := z.level(&h)
		if l == levelAbsent {
			continue
		}
		keep = append(keep, h)
		best = max(best, l)
		pinned = pinned || z.pinned(&h)
	}
	n.holders = keep
	return best, pinned
}

// fit makes room for one more holder in n. It reports false if memory is out.
func (r *Residency) fit(n *node) bool {
	if len(n.holders) < cap(n.holders) {
		return true
	}
	r.standing(n)
	if len(n.holders) < cap(n.holders) {
		return true
	}
	if !r.memory.reserve(int64(cap(n.holders)) * holderBytes) {
		return false
	}
	n.grow()
	return true
}

// Stats describes the index as a whole.
type Stats struct {
	Entries  int    // blocks known
	Bytes    int64  // memory of the entries
	Limit    int64  // what Bytes never exceeds; 0 is unlimited
	Dropped  uint64 // blocks not recorded since memory was out or a buffer full
	Rejected uint64 // blocks refused by the store's admission policy
	Evicted  uint64 // blocks let go, to save memory, while a replica held them
}

// Stats returns what the index holds and what it lost for want of memory.
func (r *Residency) Stats() Stats {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if r.closed {
		return Stats{}
	}
	s := r.store.stats()
	return Stats{
		Entries:  r.clock.len(),
		Bytes:    r.memory.used.Load(),
		Limit:    r.memory.limit,
		Dropped:  s.dropped + r.refused.Load(),
		Rejected: s.rejected,
		Evicted:  s.evicted + r.evicted.Load(),
	}
}
