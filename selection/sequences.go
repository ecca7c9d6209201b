package selection

import "slices"

const (
	// maxPrivateSlots bounds the sequences remembered of one replica. One that
	// reports more slots is left to the index, like all others.
	maxPrivateSlots = 256
	// slotSimilarity is the share of a prompt that a slot must hold more than to
	// be chosen for it: llama.cpp's default for --slot-prompt-similarity.
	slotSimilarity = 0.1
	// maxDisplaced bounds the displaced sequences remembered of one replica.
	maxDisplaced = 16
)

// sequences is what an engine with private slots has cached: each slot keeps
// the sequence it served last, and shares nothing with the others. A prompt goes
// to the idle slot with the longest common prefix, if that is long enough, else
// to the one released longest ago; without an idle slot it waits for one. The
// fleet's lock guards it.
//
// This is llama.cpp's rule. It compares tokens, the model compares blocks. Newer
// versions keep displaced sequences in host memory, unless told not to, and
// bring one back for the next prompt that it fits better than any idle slot.
// No page tells whether and how many, so these are ghosts: what answers find of
// them is learned. With a unified KV cache, which no page tells either, idle
// slots are moved there early, so that they are found as well.
type sequences struct {
	slots     []privateSlot // none where the index is the model
	waiting   []*Booking    // for a slot, first come first
	displaced []sequence    // from slots, the oldest first
	releases  int
}

// privateSlot is busy while it has a booking, and holds what it held before.
type privateSlot struct {
	booking  *Booking
	holds    sequence
	released int // the number of its last release
}

// resize sets the number of slots, 0 where they are not private. Nothing is
// known of the slots of another number.
func (s *sequences) resize(slots int) {
	if slots < 0 || slots > maxPrivateSlots {
		slots = 0
	}
	if slots != len(s.slots) {
		*s = sequences{slots: make([]privateSlot, slots)}
	}
}

// known tells whether this is the model of the replica.
func (s *sequences) known() bool { return len(s.slots) > 0 }

// match is what a prompt of so many tokens finds. One that has to wait cannot
// tell which slot it gets: it expects the mean of what those before it leave.
func (s *sequences) match(blocks []Block, tokens int) Match {
	best, common := s.choose(blocks, tokens)
	if best < 0 {
		common = s.expected(blocks)
		return Match{Sure: common, Pending: common, Maybe: common, Ghost: common}
	}
	m := Match{Maybe: common}
	if !s.slots[best].holds.doubted {
		m.Sure, m.Pending = common, common
	}
	_, m.Ghost = s.recall(blocks, common)
	return m
}

// choose returns the idle slot that a prompt of so many tokens goes to, and how
// many of them it holds; -1 if all are busy.
func (s *sequences) choose(blocks []Block, tokens int) (best int, common uint32) {
	similar, oldest := -1, -1
	for i := range s.slots {
		slot := &s.slots[i]
		if slot.booking != nil {
			continue
		}
		if oldest < 0 || slot.released < s.slots[oldest].released {
			oldest = i
		}
		if n := slot.holds.common(blocks); n > common {
			similar, common = i, n
		}
	}
	switch {
	case oldest < 0:
		return -1, 0
	case float64(common) > slotSimilarity*float64(tokens):
		return similar, common
	default:
		return oldest, s.slots[oldest].holds.common(blocks)
	}
}

// expected is how much of a prompt those in the slots and those that wait have
// in common with it, on average.
func (s *sequences) expected(blocks []Block) uint32 {
	sum := 0
	for i := range s.slots {
		sum += int(chainTokens(blocks[:commonBlocks(s.slots[i].booking.blocks, blocks)]))
	}
	for _, b := range s.waiting {
		sum += int(chainTokens(blocks[:commonBlocks(b.blocks, blocks)]))
	}
	return uint32(sum / (len(s.slots) + len(s.waiting))) //nolint:gosec // a mean of such
}

// recall finds the displaced sequence that has the most in common with a prompt,
// if it is more than so many tokens.
func (s *sequences) recall(blocks []Block, common uint32) (at int, most uint32) {
	at, most = -1, common
	for i := range s.displaced {
		if n := s.displaced[i].common(blocks); n > most {
			at, most = i, n
		}
	}
	return at, most
}

// begin gives a booking its slot, or a place among those that wait.
func (s *sequences) begin(b *Booking) {
	if s.known() && b.work != Light {
		s.waiting = append(s.waiting, b)
		s.admit()
	}
}

// admit gives idle slots to those that wait.
func (s *sequences) admit() {
	for len(s.waiting) > 0 {
		b := s.waiting[0]
		best, common := s.choose(b.blocks, b.prompt)
		if best < 0 {
			return
		}
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.slots[best].booking = b
		s.displace(&s.slots[best].holds, b, common)
	}
}

// displace remembers what b displaces from its slot, unless it goes on with most
// of it, and takes out what b brings back. A sequence is remembered once, as in
// the engine: a slot that is given back unused displaces the same one again.
func (s *sequences) displace(held *sequence, b *Booking, common uint32) {
	if at, _ := s.recall(b.blocks, common); at >= 0 {
		s.displaced = slices.Delete(s.displaced, at, at+1)
	}
	if len(held.blocks) == 0 || 2*common >= held.tokens() {
		return
	}
	s.displaced = slices.DeleteFunc(s.displaced, func(q sequence) bool { return held.contains(&q) })
	if len(s.displaced) == maxDisplaced {
		s.displaced = slices.Delete(s.displaced, 0, 1)
	}
	s.displaced = append(s.displaced, *held)
}

// end releases the slot of a booking, which now holds its prompt and what was
// generated.
func (s *sequences) end(b *Booking, generated int) {
	if slot := s.leave(b); slot != nil {
		s.releases++
		slot.released = s.releases
		slot.holds = sequence{blocks: b.blocks, tail: uint32(min(max(generated, 0), maxTail))}
	}
	s.admit()
}

// undo releases the slot of a booking, which holds what it held before.
func (s *sequences) undo(b *Booking) {
	s.leave(b)
	s.admit()
}

// leave takes a booking out and returns the slot it had, if any.
func (s *sequences) leave(b *Booking) *privateSlot {
	for i := range s.slots {
		if slot := &s.slots[i]; slot.booking == b {
			slot.booking = nil
			return slot
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *Booking) bool { return w == b })
	return nil
}

// forget empties the cache. Bookings keep their slots: those that still come to
// an end have been computed since.
func (s *sequences) forget() {
	for i := range s.slots {
		s.slots[i].holds = sequence{}
	}
	s.displaced = nil
}

// doubt says that the slots may have lost what they hold; believe and disbelieve
// end that.
func (s *sequences) doubt()   { s.setDoubted(true) }
func (s *sequences) believe() { s.setDoubted(false) }

func (s *sequences) setDoubted(doubted bool) {
	for i := range s.slots {
		s.slots[i].holds.doubted = doubted
	}
}

func (s *sequences) disbelieve() {
	for i := range s.slots {
		if s.slots[i].holds.doubted {
			s.slots[i].holds = sequence{}
		}
	}
	s.displaced = nil
}

// resident is how many tokens the slots hold.
func (s *sequences) resident() (tokens int) {
	for i := range s.slots {
		if b := s.slots[i].booking; b != nil {
			tokens += int(chainTokens(b.blocks))
		} else {
			tokens += int(s.slots[i].holds.tokens())
		}
	}
	return tokens
}
