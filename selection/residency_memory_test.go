package selection

import "testing"

const testEntryBytes = nodeBytes + holderBytes + mapOverhead

// newLimited limits a plain store, so that tests see exactly what leaves when
// memory is short.
func newLimited(t *testing.T, entries int64) *Residency {
	t.Helper()
	store := NewMapStore()
	store.memory().limit = entries * testEntryBytes
	r := NewResidency(store)
	t.Cleanup(r.Close)
	return r
}

// within checks that memory is counted right and never beyond the limit.
func within(t *testing.T, r *Residency) {
	t.Helper()
	var bytes int64
	entries := 0
	for n := r.clock.first; n != nil; n = n.next {
		bytes += r.memory.size(n)
		entries++
	}
	s := r.Stats()
	if s.Bytes != bytes || s.Entries != entries {
		t.Fatalf("counted %d bytes in %d entries, but there are %d in %d", s.Bytes, s.Entries, bytes, entries)
	}
	if s.Limit > 0 && s.Bytes > s.Limit {
		t.Fatalf("%d bytes, limit %d", s.Bytes, s.Limit)
	}
}

func TestDeadNodesLeave(t *testing.T) {
	r := newTestResidency(t)
	slot := r.Join(10_000) // 100 blocks
	for i := range uint64(500) {
		r.Book(start, slot, chain(i, 10, 100)).Release(0)
		within(t, r)
	}
	if n := r.Stats().Entries; n < 200 || n > 300 {
		t.Errorf("%d entries, want the 200 within the window and few others", n)
	}
	r.Forget(slot)
	for range 50 {
		r.Book(start, slot, chain(1, 10, 100)).Release(0)
	}
	within(t, r)
	if n := r.Stats().Entries; n != 10 {
		t.Errorf("%d entries after forgetting, want 10", n)
	}
	if lost := r.Stats(); lost.Evicted+lost.Dropped+lost.Rejected != 0 {
		t.Errorf("lost %+v", lost)
	}
}

func TestGhostsLeaveFirst(t *testing.T) {
	r := newLimited(t, 160) // less than the window of 200 blocks
	slot := r.Join(10_000)
	for i := range uint64(500) {
		r.Book(start, slot, chain(i, 10, 100)).Release(0)
		within(t, r)
		for j := i - min(i, 7); j <= i; j++ {
			expect(t, r, chain(j, 10, 100), slot, Match{Sure: 1000, Pending: 1000, Maybe: 1000})
		}
	}
	if s := r.Stats(); s.Evicted+s.Dropped != 0 {
		t.Errorf("lost %+v", s)
	}
}

func TestUnusedLeaveWhenFull(t *testing.T) {
	r := newLimited(t, 400)
	slot := r.Join(10_000_000)
	hot := chain(1<<30, 20, 100)
	for i := range uint64(3000) {
		r.Book(start, slot, chain(i, 10, 100)).Release(0)
		r.Book(start, slot, hot).Release(0)
		within(t, r)
		expect(t, r, chain(i, 10, 100), slot, Match{Sure: 1000, Pending: 1000, Maybe: 1000})
		expect(t, r, hot, slot, Match{Sure: 2000, Pending: 2000, Maybe: 2000})
	}
	if s := r.Stats(); s.Evicted == 0 || s.Dropped != 0 {
		t.Errorf("stats %+v, want evictions and nothing dropped", s)
	}
}

func TestPinnedStay(t *testing.T) {
	r := newLimited(t, 100)
	slot := r.Join(10_000_000)
	var claims []*Claim
	for i := range uint64(15) {
		claims = append(claims, r.Book(start, slot, chain(i, 10, 100)))
		within(t, r)
	}
	for i := range uint64(10) {
		expect(t, r, chain(i, 10, 100), slot, Match{Sure: 0, Pending: 1000, Maybe: 1000})
	}
	expect(t, r, chain(12, 10, 100), slot, Match{})
	if s := r.Stats(); s.Dropped != 50 {
		t.Errorf("stats %+v, want the 50 blocks without room dropped", s)
	}
	for _, c := range claims {
		c.Release(10)
	}
	within(t, r)
	if held := r.Held(slot); held != 10_000+15*10 {
		t.Errorf("holds %d tokens, want 10150", held)
	}
}

// TestHoldersAreCounted books the same blocks at ever more replicas, so that
// only lists of holders grow.
func TestHoldersAreCounted(t *testing.T) {
	r := newLimited(t, 1000)
	for range 300 {
		r.Join(1_000_000)
	}
	for i := range 300 {
		for p := range uint64(20) {
			r.Book(start, Slot(i), chain(p, 10, 100)).Release(0)
			within(t, r)
		}
	}
	if s := r.Stats(); s.Bytes < s.Limit/2 {
		t.Errorf("stats %+v, want more in use", s)
	}
}

func TestVoidHoldersMakeRoom(t *testing.T) {
	r := newTestResidency(t)
	prompt := chain(1, 10, 100)
	for range 10_000 {
		slot := r.Join(10_000)
		r.Book(start, slot, prompt).Release(10)
		r.Leave(slot)
	}
	within(t, r)
	if bytes := r.Stats().Bytes; bytes > 2000 {
		t.Errorf("%d bytes for 10 blocks", bytes)
	}
}

// TestHeapBound sends far more different prompts than fit and measures the heap
// against the configured bytes, where ristretto's maps have churned for long.
func TestHeapBound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second or two")
	}
	const bytes = 20 << 20
	base := heapBytes()
	r := NewResidency(newRistretto(t, bytes))
	defer r.Close()
	slot := r.Join(1 << 36)
	blocks := make([]Block, 50)
	for round := range uint64(4_000) {
		for i := range blocks {
			blocks[i] = Block{Key: mix(round*50 + uint64(i)), Tokens: uint32(i+1) * 100}
		}
		r.Book(start, slot, blocks).Release(0)
		if round%1000 == 999 {
			if heap := heapBytes() - base; heap > bytes {
				t.Fatalf("%d bytes of heap after %d keys, more than the %d allowed", heap, round*50, int64(bytes))
			}
		}
	}
	s := r.Stats()
	if s.Dropped+s.Rejected != 0 || s.Bytes > s.Limit || s.Entries < 20_000 {
		t.Errorf("stats %+v", s)
	}
	expect(t, r, blocks, slot, Match{Sure: 5000, Pending: 5000, Maybe: 5000})
}
