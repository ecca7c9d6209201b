package selection

import (
	"strings"
	"testing"
)

func newRistretto(t testing.TB, bytes int64) *ristrettoStore {
	t.Helper()
	s, err := NewRistrettoStore(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*ristrettoStore)
}

// eachStore runs f on every implementation.
func eachStore(t *testing.T, f func(*testing.T, Store)) {
	t.Run("maps", func(t *testing.T) { f(t, NewMapStore()) })
	t.Run("ristretto", func(t *testing.T) { f(t, newRistretto(t, minStoreBytes)) })
}

func testNode(key uint64) *node { return newNode([]Block{{Key: key, Tokens: 1}}, 0) }

func gone(n *node) *node {
	n.flags.Or(nodeGone)
	return n
}

func TestStoreContract(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		defer s.close()
		for key := range uint64(1000) {
			first := testNode(key)
			if s.get(key) != nil {
				t.Fatalf("key %d is there before it was added", key)
			}
			if s.add(first) != first || s.get(key) != first {
				t.Fatalf("key %d is not there after it was added", key)
			}
			if s.add(testNode(key)) != first {
				t.Fatalf("a second node replaced key %d", key)
			}
			if key%3 == 0 {
				s.delete(gone(first))
				second := testNode(key)
				if s.add(second) != second || s.get(key) != second {
					t.Fatalf("key %d cannot be added again", key)
				}
				s.delete(first) // late, and not the node that is there
			}
		}
		s.flush()
		for key := range uint64(1000) {
			if n := s.get(key); n == nil || n.gone() {
				t.Fatalf("key %d got lost", key)
			}
		}
		if s.stats() != (storeStats{}) {
			t.Errorf("stats %+v, want none", s.stats())
		}
	})
}

func TestStoreDeletes(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		defer s.close()
		for key := range uint64(500) {
			n := testNode(key)
			s.add(n)
			s.delete(gone(n))
		}
		if r, ok := s.(*ristrettoStore); ok {
			r.flush()
			r.cache.Wait()
		}
		for key := range uint64(500) {
			if s.get(key) != nil {
				t.Fatalf("key %d is still there", key)
			}
		}
	})
}

// TestRistrettoFlood adds more at once than ristretto's own buffer takes.
func TestRistrettoFlood(t *testing.T) {
	const count = 3 * 32768
	s := newRistretto(t, 64<<20)
	defer s.close()
	done := make(chan bool)
	for worker := range uint64(4) {
		go func() {
			ok := true
			for i := range uint64(count) {
				key := mix(i)
				n := s.add(testNode(key))
				ok = ok && s.get(key) == n && n == s.add(testNode(key))
			}
			_ = worker
			done <- ok
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("a node was not found right after it was added")
		}
	}
	s.flush()
	for i := range uint64(count) {
		if s.get(mix(i)) == nil {
			t.Fatalf("key %d was dropped", i)
		}
	}
	if s.stats() != (storeStats{}) {
		t.Errorf("stats %+v, want none", s.stats())
	}
}

// TestRistrettoRefusals lets ristretto run full, which Residency never does: what
// it does not keep is marked and counted.
func TestRistrettoRefusals(t *testing.T) {
	s := newRistretto(t, minStoreBytes)
	defer s.close()
	nodes := make([]*node, 60_000)
	for i := range nodes {
		nodes[i] = testNode(mix(uint64(i)))
		s.add(nodes[i])
	}
	s.flush()
	lost := uint64(0)
	for _, n := range nodes {
		if n.gone() {
			lost++
		} else if s.get(n.key) != n {
			t.Fatal("a node is gone without a mark")
		}
	}
	if st := s.stats(); lost == 0 || st.rejected+st.evicted != lost || st.dropped != 0 {
		t.Errorf("%d nodes lost, stats %+v", lost, st)
	}
}

func TestRistrettoTooSmall(t *testing.T) {
	if _, err := NewRistrettoStore(1000); err == nil || !strings.Contains(err.Error(), "1000") {
		t.Errorf("error %v, want one that names the size", err)
	}
}
