package engine

import "sort"

// slotSimilarity is the least share of a prompt that a slot must hold to be
// chosen for it, llama.cpp's default for --slot-prompt-similarity.
const slotSimilarity = 0.10

// slot holds the sequence it served last, or serves now.
type slot struct {
	keys     []uint64 // of that sequence
	tokens   int      // how many of its tokens are in the cache
	busy     bool
	released int // when it was last released, in releases
}

// slots is llama.cpp's cache: one sequence a slot, nothing shared between them.
// A prompt goes to the idle slot with the longest common prefix if that is long
// enough, else to the one released longest ago. llama.cpp compares tokens, this
// model full blocks. Prompts displaced to host memory are not modelled.
type slots struct {
	size     int // tokens in a block
	slots    []slot
	releases int
}

func newSlots(p Profile) *slots {
	return &slots{size: p.BlockSize, slots: make([]slot, p.MaxSequences)}
}

func (c *slots) admit(r *Request) bool {
	best, common := c.choose(r)
	if best < 0 {
		return false
	}
	s := &c.slots[best]
	s.busy, s.keys = true, r.Keys
	r.slot = best
	r.computed = min(common, r.tokens()-1)
	s.tokens = r.computed
	return true
}

func (c *slots) lookup(r *Request) int {
	_, common := c.choose(r)
	return min(common, r.tokens()-1)
}

// choose finds the slot for a request and how many tokens it can reuse there.
func (c *slots) choose(r *Request) (best, common int) {
	similar, oldest := -1, -1
	for i := range c.slots {
		s := &c.slots[i]
		if s.busy {
			continue
		}
		if oldest < 0 || s.released < c.slots[oldest].released {
			oldest = i
		}
		if n := c.common(s, r.Keys); n > common {
			similar, common = i, n
		}
	}
	if similar >= 0 && float64(common) > slotSimilarity*float64(r.tokens()) {
		return similar, common
	}
	if oldest < 0 {
		return -1, 0
	}
	return oldest, c.common(&c.slots[oldest], r.Keys)
}

// common is the number of leading tokens that a slot shares with a sequence.
// Keys are chained, so equal keys mean that all before them are equal too.
func (c *slots) common(s *slot, keys []uint64) int {
	n := min(s.tokens/c.size, len(s.keys), len(keys))
	return c.size * sort.Search(n, func(i int) bool { return s.keys[i] != keys[i] })
}

func (c *slots) grow(r *Request, tokens int) bool {
	c.slots[r.slot].tokens = tokens
	return true
}

func (c *slots) release(r *Request) {
	c.releases++
	s := &c.slots[r.slot]
	s.busy, s.released = false, c.releases
}

func (c *slots) steps(_ []*Request, limit int) int { return limit }

func (c *slots) used() int {
	n := 0
	for _, s := range c.slots {
		if s.busy {
			n += s.tokens
		}
	}
	return n
}

func (c *slots) clear() {
	for i := range c.slots {
		c.slots[i].keys = nil
	}
}
