package selection

import (
	"bytes"
	"math/bits"
)

// Match finds how much of a prompt's beginning each replica holds. It fills
// into, indexed by slot, and clears what it has no replica for; slots beyond
// its length are left out (see Slots).
//
// A prompt that goes on from an answer counts the tokens generated then, as
// long as its next blocks lie inside an assistant message.
//
// It returns the ghost tokens: those beyond the longest match of any replica
// that some replica held and evicted, so that they must be computed again.
func (r *Residency) Match(blocks []Block, into []Match) (ghost uint32) {
	clear(into)
	r.gate.RLock()
	defer r.gate.RUnlock()
	if r.closed || len(blocks) == 0 {
		return 0
	}
	s := r.searches.Get().(*search)
	defer r.searches.Put(s)
	return s.run(r, blocks, into)
}

// search finds the match lengths of all replicas at once. Along the chain a
// replica's level only falls, so where the levels of all replicas are equal at
// two blocks, nothing of interest lies between.
type search struct {
	store    Store
	blocks   []Block
	into     []Match
	horizons []horizon
	levels   []byte // rows of one level per slot
	held     uint32 // longest match of any replica
	known    uint32 // the same with ghosts
}

func (s *search) run(r *Residency, blocks []Block, into []Match) uint32 {
	s.store, s.blocks, s.into = r.store, blocks, into
	s.held, s.known = 0, 0
	s.horizons = s.horizons[:0]
	caches := *r.caches.Load()
	for _, c := range caches[:min(len(caches), len(into))] {
		s.horizons = append(s.horizons, c.horizon())
	}
	rows := rowsUsed + bits.Len(uint(len(blocks))) + 1
	if need := rows * len(s.horizons); cap(s.levels) < need {
		s.levels = make([]byte, need)
	}
	root, end := s.row(rowRoot), s.row(rowEnd)
	for i := range root {
		root[i] = byte(levelSure)
	}
	copy(s.row(rowLimits), root)
	clear(end)
	s.between(-1, len(blocks), root, end, rowsUsed)
	s.blocks, s.into = nil, nil
	return s.known - s.held
}

// Rows of levels. The others belong to the depths of the search.
const (
	rowRoot   = iota
	rowEnd    // beyond the last block
	rowLimits // of what may follow: after a hole nothing is worth anything
	rowsUsed
)

func (s *search) row(i int) []byte {
	n := len(s.horizons)
	return s.levels[:cap(s.levels)][i*n : (i+1)*n]
}

// between finds where levels fall between the blocks lo and hi, whose levels
// are given. The index -1 is the empty prompt, which everyone holds, and
// len(blocks) what nobody does. Falls are found in the chain's order.
func (s *search) between(lo, hi int, low, high []byte, depth int) {
	switch {
	case bytes.Equal(low, high):
		return
	case hi-lo == 1:
		s.fall(lo, hi, low, high)
		return
	}
	mid := lo + (hi-lo)/2
	middle := s.row(depth)
	s.probe(mid, middle)
	s.between(lo, mid, low, middle, depth+1)
	s.between(mid, hi, middle, high, depth+1)
}

// probe looks up the levels of block i.
func (s *search) probe(i int, levels []byte) {
	clear(levels)
	n := s.store.get(s.blocks[i].Key)
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	horizons := s.horizons[:len(levels)]
	for i := range n.holders {
		h := &n.holders[i]
		if int(h.slot) < len(horizons) {
			levels[h.slot] = byte(horizons[h.slot].level(h))
		}
	}
}

// fall notes the match lengths that end with block lo.
func (s *search) fall(lo, hi int, low, high []byte) {
	var tokens uint32
	if lo >= 0 {
		tokens = s.blocks[lo].Tokens
	}
	tails := lo >= 0 && hi < len(s.blocks) && s.blocks[hi].Reply && !s.blocks[lo].Reply
	if tails {
		s.addTails(lo, hi, low, high)
	}
	limits := s.row(rowLimits)
	for slot := range low {
		if l := min(low[slot], limits[slot]); l > high[slot] {
			s.extend(slot, level(l), tokens)
			limits[slot] = high[slot]
		}
	}
}

// extend makes a match of slot at least this long for the levels up to l.
func (s *search) extend(slot int, l level, tokens uint32) {
	m := &s.into[slot]
	if l >= levelSure {
		m.Sure = max(m.Sure, tokens)
	}
	if l >= levelPending {
		m.Pending = max(m.Pending, tokens)
	}
	if l >= levelMaybe {
		m.Maybe = max(m.Maybe, tokens)
		s.held = max(s.held, tokens)
	}
	m.Ghost = max(m.Ghost, tokens)
	s.known = max(s.known, tokens)
}

// addTails adds to the matches that end with block lo what was generated after
// it, up to the end of the assistant message that starts at hi.
func (s *search) addTails(lo, hi int, low, high []byte) {
	n := s.store.get(s.blocks[lo].Key)
	if n == nil {
		return
	}
	start := s.blocks[lo].Tokens
	reply := s.replyEnd(hi) - start
	limits := s.row(rowLimits)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.holders {
		h := &n.holders[i]
		if h.tail == 0 || int(h.slot) >= len(low) {
			continue
		}
		slot := int(h.slot)
		l := min(level(low[slot]), level(limits[slot]), s.horizons[slot].age(h.tailEpoch))
		if l > level(high[slot]) {
			s.extend(slot, l, start+min(h.tail, reply))
		}
	}
}

// replyEnd returns the tokens up to the end of the assistant message in which
// block i lies.
func (s *search) replyEnd(i int) uint32 {
	for i+1 < len(s.blocks) && s.blocks[i+1].Reply {
		i++
	}
	return s.blocks[i].Tokens
}
