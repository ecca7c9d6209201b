package selection

import (
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// TestConcurrentUse lets many requests live at once, on shared prompts, while
// replicas restart, leave and join. In the end nothing may be pinned and all
// sums must be right.
func TestConcurrentUse(t *testing.T) {
	defer goleak.VerifyNone(t)
	eachStore(t, func(t *testing.T, s Store) {
		r := NewResidency(s)
		defer r.Close()
		for range 6 {
			r.Join(20_000)
		}
		var group sync.WaitGroup
		for worker := range uint64(6) {
			group.Go(func() { requests(r, rand.New(rand.NewPCG(1, worker)), 400) })
		}
		group.Go(func() {
			rng := rand.New(rand.NewPCG(2, 0))
			for range 50 {
				r.Forget(Slot(rng.IntN(4)))
				r.SetCapacity(Slot(rng.IntN(6)), 10_000+rng.IntN(20_000))
				r.Leave(4)
				r.Join(20_000)
				prompt := chain(rng.Uint64N(20), 30, 50)
				r.Book(start, r.Join(20_000), prompt).Release(10)
				r.Stats()
			}
		})
		group.Wait()
		checkSums(t, r)
	})
}

// TestCloseInUse closes the index under requests that go on.
func TestCloseInUse(t *testing.T) {
	defer goleak.VerifyNone(t)
	for round := range uint64(20) {
		r := NewResidency(newRistretto(t, MinStoreBytes))
		for range 6 {
			r.Join(20_000)
		}
		var group sync.WaitGroup
		for worker := range uint64(4) {
			group.Go(func() { requests(r, rand.New(rand.NewPCG(round, worker)), 60) })
		}
		group.Go(r.Close)
		group.Go(r.Close)
		group.Wait()
		checkSums(t, r)
	}
}

// requests lives through count requests, a few of them at a time.
func requests(r *Residency, rng *rand.Rand, count int) {
	var open []*Claim
	into := make([]Match, 8)
	for range count {
		prompt := chain(rng.Uint64N(20), 1+rng.IntN(40), 50)
		r.Match(prompt, into)
		open = append(open, r.Book(start, Slot(rng.IntN(6)), prompt))
		if len(open) > 5 {
			end(open[0], rng)
			open = open[1:]
		}
	}
	for _, c := range open {
		end(c, rng)
	}
}

// end ends a claim in one of the ways, from two sides at once.
func end(c *Claim, rng *rand.Rand) {
	way := rng.IntN(4)
	var group sync.WaitGroup
	group.Go(func() {
		if way > 0 {
			c.Confirm()
		}
		if way > 1 {
			c.Release(way * 10)
		} else {
			c.Undo()
		}
	})
	c.Undo()
	group.Wait()
}

// checkSums compares the replicas' sums with what the nodes say.
func checkSums(t *testing.T, r *Residency) {
	t.Helper()
	known := make([]int64, r.Slots())
	for n := r.clock.first; n != nil; n = n.next {
		for _, h := range n.holders {
			c := r.cache(h.slot)
			if c.horizon().pinned(&h) {
				t.Fatalf("a block is pinned %d times on slot %d after all requests", h.pins, h.slot)
			}
			if c.recency.find(h.epoch) >= 0 {
				known[h.slot] += int64(n.tokens)
			}
		}
	}
	for slot, c := range *r.caches.Load() {
		if c.recency.pinned != 0 {
			t.Errorf("slot %d has %d tokens pinned after all requests", slot, c.recency.pinned)
		}
		var sum int64
		for _, b := range c.recency.buckets {
			if sum += b.tokens; b.tokens < 0 {
				t.Errorf("slot %d has a bucket of %d tokens", slot, b.tokens)
			}
		}
		if sum != c.recency.total || known[slot] > sum {
			t.Errorf("slot %d counts %d tokens, its buckets %d, its blocks %d", slot, c.recency.total, sum, known[slot])
		}
	}
}
