package selection

import (
	"fmt"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

const (
	// writerQueue is how many changes may wait for the writer: several bursts
	// of long prompts. A caller that finds it full waits.
	writerQueue = 1 << 16
	// writerBatch is how many changes are handed to ristretto before waiting
	// until it has applied them. Its own buffer, which drops what it cannot
	// hold, takes 32768.
	writerBatch = 8192

	// entryOverhead is what ristretto and the maps below it need for an entry,
	// in bytes: its two maps at their lowest load, after long churn (measured
	// by TestRistrettoOverhead), and the admission counters.
	entryOverhead = 288
	// writerBytes is what the queue and the pending nodes take at most.
	writerBytes = 8 << 20

	minStoreBytes = 2 * writerBytes
)

// ristrettoStore is a Store on ristretto, which inserts asynchronously, drops
// inserts when its buffer is full, refuses newcomers when it is full itself and
// panics when used while it closes. Here a single writer makes all changes, in
// batches that fit the buffer, and a new node is found among the pending ones
// until ristretto shows it. Residency never fills it beyond its limit, so its
// admission policy has nothing to decide, and gates Close.
type ristrettoStore struct {
	cache *ristretto.Cache[uint64, *node]
	bytes memory

	waiting atomic.Int64 // nodes in pending
	pending [mapShards]mapShard

	changes chan change
	done    chan struct{}

	dropped, rejected, evicted atomic.Uint64
}

// change is a node to insert or to delete, or a wait until all before is done.
type change struct {
	node   *node
	delete bool
	done   chan struct{}
}

// NewRistrettoStore returns a Store that takes at most so many bytes of heap,
// nodes and their holders included.
func NewRistrettoStore(bytes int64) (Store, error) {
	if bytes < minStoreBytes {
		return nil, fmt.Errorf("index memory of %d bytes is less than the least possible, %d", bytes, minStoreBytes)
	}
	s := &ristrettoStore{
		bytes:   memory{limit: bytes - writerBytes, overhead: entryOverhead},
		changes: make(chan change, writerQueue),
		done:    make(chan struct{}),
	}
	for i := range s.pending {
		s.pending[i].nodes = make(map[uint64]*node)
	}
	var err error
	s.cache, err = ristretto.NewCache(&ristretto.Config[uint64, *node]{
		NumCounters:        max(s.bytes.limit/(entryOverhead+nodeBytes+holderBytes), 1),
		MaxCost:            s.bytes.limit,
		BufferItems:        64,
		IgnoreInternalCost: true,
		OnEvict:            func(i *ristretto.Item[*node]) { lose(i.Value, &s.evicted) },
		OnReject:           func(i *ristretto.Item[*node]) { lose(i.Value, &s.rejected) },
	})
	if err != nil {
		return nil, fmt.Errorf("making the index cache: %w", err)
	}
	go s.write()
	return s, nil
}

// lose counts a node that ristretto did not keep. It runs on ristretto's own
// goroutine and must not lock or call back.
func lose(n *node, count *atomic.Uint64) {
	if n != nil {
		n.flags.Or(nodeGone)
		count.Add(1)
	}
}

func (s *ristrettoStore) shard(key uint64) *mapShard { return &s.pending[key%mapShards] }

// get asks the pending nodes first: a node leaves them only when ristretto
// shows it.
func (s *ristrettoStore) get(key uint64) *node {
	if s.waiting.Load() > 0 {
		p := s.shard(key)
		p.mu.RLock()
		n := p.nodes[key]
		p.mu.RUnlock()
		if n != nil {
			return n
		}
	}
	n, _ := s.cache.Get(key)
	return n
}

func (s *ristrettoStore) add(fresh *node) *node {
	n := s.admit(fresh)
	if n == fresh {
		s.changes <- change{node: fresh}
	}
	return n
}

// admit makes fresh pending unless there is a node for its key.
func (s *ristrettoStore) admit(fresh *node) *node {
	p := s.shard(fresh.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	n, pending := p.nodes[fresh.key]
	if !pending {
		n, _ = s.cache.Get(fresh.key)
	}
	if n != nil && !n.gone() {
		return n
	}
	p.nodes[fresh.key] = fresh
	if pending {
		fresh.flags.Or(nodeReplaces)
	} else {
		s.waiting.Add(1)
	}
	return fresh
}

func (s *ristrettoStore) delete(n *node) { s.changes <- change{node: n, delete: true} }

// write is the one goroutine that changes the cache.
func (s *ristrettoStore) write() {
	defer close(s.done)
	batch := make([]change, 0, writerBatch)
	for c := range s.changes {
		batch = s.collect(append(batch[:0], c))
		s.apply(batch)
		clear(batch)
	}
}

// collect adds what else is waiting to a batch.
func (s *ristrettoStore) collect(batch []change) []change {
	for len(batch) < writerBatch {
		select {
		case c, ok := <-s.changes:
			if !ok {
				return batch
			}
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

// apply hands a batch to ristretto. Deletions come last, when all insertions
// show: then what is found for a key is there to stay, since nobody else makes
// changes.
func (s *ristrettoStore) apply(batch []change) {
	for _, c := range batch {
		if c.node != nil && !c.delete && !c.node.gone() {
			s.insert(c.node)
		}
	}
	s.cache.Wait()
	for _, c := range batch {
		switch {
		case c.done != nil:
			close(c.done)
		case c.delete:
			s.remove(c.node)
		default:
			s.settle(c.node)
		}
	}
}

func (s *ristrettoStore) insert(n *node) {
	if n.flags.Load()&nodeReplaces != 0 {
		s.cache.Wait() // or ristretto may refuse it as a second new entry of its key
	}
	if !s.cache.Set(n.key, n, entryOverhead+nodeBytes+holderBytes) {
		lose(n, &s.dropped)
	}
}

func (s *ristrettoStore) remove(n *node) {
	if found, _ := s.cache.Get(n.key); found == n {
		s.cache.Del(n.key)
	}
	s.bytes.left(n)
}

// settle takes a node that ristretto shows out of the pending ones.
func (s *ristrettoStore) settle(n *node) {
	p := s.shard(n.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[n.key] == n {
		delete(p.nodes, n.key)
		s.waiting.Add(-1)
	}
}

func (s *ristrettoStore) flush() {
	done := make(chan struct{})
	s.changes <- change{done: done}
	<-done
}

func (s *ristrettoStore) memory() *memory { return &s.bytes }

func (s *ristrettoStore) stats() storeStats {
	return storeStats{dropped: s.dropped.Load(), rejected: s.rejected.Load(), evicted: s.evicted.Load()}
}

// close lets the writer finish, so that ristretto gets no call while it closes.
func (s *ristrettoStore) close() {
	close(s.changes)
	<-s.done
	s.cache.Close()
}
