package selection

// Store keeps the nodes of a Residency by block key. NewRistrettoStore makes
// the one for production, NewMapStore a plain one.
type Store interface {
	// get returns the node for key, nil if there is none.
	get(key uint64) *node
	// add stores fresh unless a node for its key is there, and returns the
	// one that is stored now. Every get from then on finds it.
	add(fresh *node) *node
	// delete takes out n, which is marked as gone, but no other node of its key.
	delete(n *node)
	// flush waits until all deletions so far have freed their memory.
	flush()
	// memory is what the store may take and takes. The store gives back what
	// deleted nodes took; all else is up to the caller.
	memory() *memory
	stats() storeStats
	// close frees everything. No other call may run, or follow.
	close()
}

// storeStats counts what a store did with nodes against our will.
type storeStats struct {
	dropped, rejected, evicted uint64
}
