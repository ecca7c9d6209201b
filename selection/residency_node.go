package selection

import (
	"sort"
	"sync"
	"sync/atomic"
)

// node is what the index knows about one block: which replicas hold it. The
// key, the tokens and the reply flag never change.
type node struct {
	mu      sync.Mutex // guards holders, last in lock order
	key     uint64
	tokens  uint32 // of this block alone
	flags   atomic.Uint32
	holders []holder // sorted by slot
	next    *node    // the clock's list
}

const (
	// nodeReply marks a block inside an assistant message.
	nodeReply = 1 << iota
	// nodeGone marks a node that left the index: whoever still finds it looks again.
	nodeGone
	// nodeUsed is the clock's second chance: set by use, cleared by a visit.
	nodeUsed
	// nodeReplaces marks a node whose gone predecessor may be on its way to ristretto.
	nodeReplaces
)

// holder is one replica's share in a node. It is void when both its stamp and
// its pins are older than what the replica's horizon remembers.
type holder struct {
	slot      Slot
	pending   bool   // no first token yet that proves the block
	pins      uint32 // running requests that use the block
	pinned    uint32 // epoch in which the first of them was booked
	epoch     uint32 // last use by a finished request
	tail      uint32 // tokens generated after the prompt that ended here
	tailEpoch uint32
}

// level says how sure it is that a replica holds a block. Levels never rise
// along a chain, but for holes left by a full index.
type level uint8

const (
	levelAbsent  level = iota
	levelGhost         // evicted, but remembered
	levelMaybe         // near the capacity
	levelPending       // booked, no first token yet
	levelSure
)

// horizon holds, for one replica, the epochs from which on stamps and pins
// count for something.
type horizon struct {
	floor  uint32 // pins from before the last Forget are void
	oldest uint32 // remembered at all
	maybe  uint32
	sure   uint32
}

func (z horizon) level(h *holder) level {
	if z.pinned(h) {
		if h.pending {
			return levelPending
		}
		return levelSure
	}
	return z.age(h.epoch)
}

func (z horizon) pinned(h *holder) bool { return h.pins > 0 && !before(h.pinned, z.floor) }

func (z horizon) age(epoch uint32) level {
	switch {
	case before(epoch, z.oldest):
		return levelAbsent
	case before(epoch, z.maybe):
		return levelGhost
	case before(epoch, z.sure):
		return levelMaybe
	}
	return levelSure
}

// newNode makes the node for blocks[i].
func newNode(blocks []Block, i int) *node {
	b := blocks[i]
	n := &node{key: b.Key, tokens: b.Tokens, holders: make([]holder, 0, 1)}
	if i > 0 {
		n.tokens -= min(n.tokens, blocks[i-1].Tokens)
	}
	if b.Reply {
		n.flags.Store(nodeReply)
	}
	return n
}

func (n *node) reply() bool { return n.flags.Load()&nodeReply != 0 }
func (n *node) gone() bool  { return n.flags.Load()&nodeGone != 0 }

// search returns the place of slot in the holders.
func (n *node) search(slot Slot) (int, bool) {
	i := sort.Search(len(n.holders), func(i int) bool { return n.holders[i].slot >= slot })
	return i, i < len(n.holders) && n.holders[i].slot == slot
}

// holder returns the holder of slot, nil if there is none.
func (n *node) holder(slot Slot) *holder {
	if i, ok := n.search(slot); ok {
		return &n.holders[i]
	}
	return nil
}

// insert adds a holder at place i, where there must be room.
func (n *node) insert(i int, h holder) *holder {
	n.holders = n.holders[:len(n.holders)+1]
	copy(n.holders[i+1:], n.holders[i:])
	n.holders[i] = h
	return &n.holders[i]
}

// remove takes out the holder of slot.
func (n *node) remove(slot Slot) {
	if i, ok := n.search(slot); ok {
		n.holders = n.holders[:i+copy(n.holders[i:], n.holders[i+1:])]
	}
}

// grow doubles the room for holders.
func (n *node) grow() {
	n.holders = append(make([]holder, 0, 2*cap(n.holders)), n.holders...)
}
