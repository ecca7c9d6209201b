package selection

import "sync/atomic"

// Sizes of what a node allocates, in bytes, as rounded by the allocator. Holder
// lists double, and every doubling of holderBytes is a size class of its own.
const (
	nodeBytes   = 64
	holderBytes = 24
)

// memory counts the bytes of nodes against a store's limit. Nothing is allocated
// without having been reserved, and nothing is given back before the store has
// let go of it, so the limit holds whatever comes.
type memory struct {
	limit    int64 // 0: unlimited
	overhead int64 // of the store, per node, at most

	used    atomic.Int64
	leaving atomic.Int64 // part of used that the store is about to let go of
}

// size is the bytes that n takes.
func (m *memory) size(n *node) int64 {
	return m.overhead + nodeBytes + int64(cap(n.holders))*holderBytes
}

// reserve reports false if there is no room for so many bytes.
func (m *memory) reserve(bytes int64) bool {
	if used := m.used.Add(bytes); m.limit > 0 && used > m.limit {
		m.used.Add(-bytes)
		return false
	}
	return true
}

// free gives back what was reserved and never used.
func (m *memory) free(bytes int64) { m.used.Add(-bytes) }

// leave announces that the store is asked to delete n, whose lock is held.
func (m *memory) leave(n *node) { m.leaving.Add(m.size(n)) }

// left gives back the bytes of n, which the store has deleted.
func (m *memory) left(n *node) {
	n.mu.Lock()
	bytes := m.size(n)
	n.mu.Unlock()
	m.used.Add(-bytes)
	m.leaving.Add(-bytes)
}

// room is how many bytes can be reserved once the store has let go of what
// leaves.
func (m *memory) room() int64 { return m.limit - m.used.Load() + m.leaving.Load() }

// need says how much a sweep must let go.
type need int

const (
	needNothing need = iota // what no replica holds or remembers
	needGhosts              // what no replica holds
	needUnused              // what is not pinned and was not used since the last visit
)

// need is needGhosts with less than an eighth of the memory left, and
// needUnused with less than a sixteenth left.
func (m *memory) need() need {
	room := m.room()
	switch {
	case m.limit == 0 || room > m.limit/8:
		return needNothing
	case room > m.limit/16:
		return needGhosts
	}
	return needUnused
}
