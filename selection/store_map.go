package selection

import "sync"

const (
	mapShards = 64
	// mapOverhead is what Go's maps need for an entry at their lowest regular load.
	mapOverhead = 40
)

// mapStore is a Store of plain maps: exact at once, without bound.
type mapStore struct {
	shards [mapShards]mapShard
	bytes  memory
}

type mapShard struct {
	mu    sync.RWMutex
	nodes map[uint64]*node
}

// NewMapStore returns a Store of plain maps without a memory bound. Same calls
// in the same order give the same results, as virtual time needs it.
func NewMapStore() Store {
	m := &mapStore{bytes: memory{overhead: mapOverhead}}
	for i := range m.shards {
		m.shards[i].nodes = make(map[uint64]*node)
	}
	return m
}

func (m *mapStore) shard(key uint64) *mapShard { return &m.shards[key%mapShards] }

func (m *mapStore) get(key uint64) *node {
	s := m.shard(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nodes[key]
}

func (m *mapStore) add(fresh *node) *node {
	s := m.shard(fresh.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[fresh.key]; n != nil && !n.gone() {
		return n
	}
	s.nodes[fresh.key] = fresh
	return fresh
}

func (m *mapStore) delete(n *node) {
	m.bytes.left(n)
	s := m.shard(n.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[n.key] == n {
		delete(s.nodes, n.key)
	}
}

func (m *mapStore) flush()            {}
func (m *mapStore) memory() *memory   { return &m.bytes }
func (m *mapStore) stats() storeStats { return storeStats{} }
func (m *mapStore) close()            {}
