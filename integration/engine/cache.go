package engine

// cache is the KV cache as the scheduler sees it. It keeps its part of a
// sequence's state in the request.
type cache interface {
	// admit reserves what is already cached of the request's tokens and sets
	// computed to it, or reports that the whole sequence does not fit now.
	admit(r *Request) bool
	// lookup is how many of the request's tokens admit would find.
	lookup(r *Request) int
	// grow makes room for the first tokens tokens of the request and makes its
	// full blocks findable, or changes nothing and reports false.
	grow(r *Request, tokens int) bool
	// release gives back what the request holds; its content stays findable.
	release(r *Request)
	// steps is how many decode steps, at most limit, all running sequences can
	// take before memory runs out.
	steps(running []*Request, limit int) int
	// used is the number of tokens' worth of memory that running sequences hold.
	used() int
	// clear forgets all content.
	clear()
}

// block is one KV block. Blocks that no sequence refers to stand in a ring
// around block 0, the one to be reused first at its front.
type block struct {
	key        uint64 // chained key of its content, 0 when it has none
	refs       int32
	prev, next int32
	chain      int32  // the next block with the same place in the index, 0 for none
	admission  uint32 // of the request that wrote it
}

// paged is vLLM's cache: blocks shared by reference count, found by chained key,
// reused in the order in which they were released.
type paged struct {
	size   int // tokens in a block
	total  int // blocks
	free   int // blocks that no sequence refers to, those never used included
	blocks []block
	index  keyIndex
	spare  [][]int32 // block lists of finished requests, for reuse

	admissions uint32
}

func newPaged(p Profile) *paged {
	return &paged{
		size: p.BlockSize, total: p.Blocks, free: p.Blocks,
		blocks: make([]block, 1), index: newKeyIndex(p.Blocks),
	}
}

func (c *paged) blocksFor(tokens int) int { return (tokens + c.size - 1) / c.size }

func (c *paged) admit(r *Request) bool {
	held := r.blocks[:0]
	if held == nil && len(c.spare) > 0 {
		held = c.spare[len(c.spare)-1]
		c.spare = c.spare[:len(c.spare)-1]
	}
	idle := 0
	for limit := c.findable(r); len(held) < limit; {
		b := c.index.find(c.blocks, r.Keys[len(held)])
		if b == 0 {
			break
		}
		if c.blocks[b].refs == 0 {
			idle++
		}
		held = append(held, b)
	}
	if c.blocksFor(r.tokens())-len(held)+idle > c.free {
		r.blocks = held[:0]
		return false
	}
	for _, b := range held {
		c.hold(b)
	}
	c.admissions++
	r.admission = c.admissions
	r.blocks, r.keyed = held, len(held)
	r.computed = len(held) * c.size
	return true
}

// findable is how many blocks of a request may be found: the last token must be
// computed to predict the next one.
func (c *paged) findable(r *Request) int { return min((r.tokens()-1)/c.size, len(r.Keys)) }

func (c *paged) lookup(r *Request) int {
	n := 0
	for limit := c.findable(r); n < limit; n++ {
		if c.index.find(c.blocks, r.Keys[n]) == 0 {
			break
		}
	}
	return n * c.size
}

func (c *paged) grow(r *Request, tokens int) bool {
	need := c.blocksFor(tokens) - len(r.blocks)
	if need > c.free {
		return false
	}
	for range need {
		r.blocks = append(r.blocks, c.take())
	}
	for full := min(tokens/c.size, len(r.Keys)); r.keyed < full; r.keyed++ {
		c.setKey(r.blocks[r.keyed], r.Keys[r.keyed], r.admission)
	}
	return true
}

func (c *paged) release(r *Request) {
	// The tail goes first: a prefix is more likely to be asked for again.
	for i := len(r.blocks) - 1; i >= 0; i-- {
		c.drop(r.blocks[i])
	}
	if r.blocks != nil {
		c.spare = append(c.spare, r.blocks[:0])
	}
	r.blocks, r.keyed = nil, 0
}

func (c *paged) steps(running []*Request, limit int) int {
	fits := func(k int) bool {
		need := 0
		for _, r := range running {
			need += c.blocksFor(r.computed+k) - len(r.blocks)
		}
		return need <= c.free
	}
	if fits(limit) {
		return limit
	}
	low, high := 0, limit // fits(low) and not fits(high)
	for high-low > 1 {
		if mid := (low + high) / 2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

func (c *paged) used() int { return (c.total - c.free) * c.size }

func (c *paged) clear() {
	c.index.clear()
	for i := range c.blocks {
		c.blocks[i].key = 0
	}
}

// take returns a block for new content: one never used, or else the free block
// released longest ago, whose content is thereby evicted.
func (c *paged) take() int32 {
	c.free--
	if len(c.blocks) <= c.total {
		c.blocks = append(c.blocks, block{refs: 1})
		return int32(len(c.blocks) - 1)
	}
	b := c.blocks[0].next
	c.unlink(b)
	c.index.remove(c.blocks, b)
	c.blocks[b].refs = 1
	return b
}

func (c *paged) hold(b int32) {
	if c.blocks[b].refs == 0 {
		c.unlink(b)
		c.free--
	}
	c.blocks[b].refs++
}

func (c *paged) drop(b int32) {
	c.blocks[b].refs--
	if c.blocks[b].refs > 0 {
		return
	}
	last := c.blocks[0].prev
	c.blocks[b].prev, c.blocks[b].next = last, 0
	c.blocks[last].next, c.blocks[0].prev = b, b
	c.free++
}

func (c *paged) unlink(b int32) {
	prev, next := c.blocks[b].prev, c.blocks[b].next
	c.blocks[prev].next, c.blocks[next].prev = next, prev
}

// setKey makes a block findable. vLLM finds either of two blocks with the same
// content; here a block takes over from one that is free, and of two in use the
// one of the sequence admitted last is found. That depends on no order within a
// stretch of decode steps, so it can be taken in one leap.
func (c *paged) setKey(b int32, key uint64, admission uint32) {
	if key == 0 {
		return
	}
	if old := c.index.find(c.blocks, key); old != 0 {
		twin := &c.blocks[old]
		if twin.refs > 0 && twin.admission > admission {
			return
		}
		c.index.remove(c.blocks, old)
	}
	c.index.add(c.blocks, b, key)
	c.blocks[b].admission = admission
}
