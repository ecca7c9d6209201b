package selection

import "testing"

// prompts sends prompts of 1000 tokens through a replica, one after the other.
func prompts(r *Residency, slot Slot, names ...uint64) {
	for _, name := range names {
		r.Book(start, slot, chain(name, 10, 100)).Release(0)
	}
}

func numbers(from, count uint64) []uint64 {
	names := make([]uint64, count)
	for i := range names {
		names[i] = from + uint64(i)
	}
	return names
}

func TestRegret(t *testing.T) {
	t.Run("not full", func(t *testing.T) {
		r := newTestResidency(t)
		slot := r.Join(50_000)
		prompts(r, slot, append(numbers(0, 40), numbers(0, 40)...)...)
		if got := r.Regret(slot); got != 0 {
			t.Errorf("regret %v, want 0", got)
		}
	})
	t.Run("nothing asked again", func(t *testing.T) {
		r := newTestResidency(t)
		slot := r.Join(50_000)
		prompts(r, slot, numbers(0, 500)...)
		if got := r.Regret(slot); got != 0 {
			t.Errorf("regret %v, want 0", got)
		}
	})
	t.Run("everything asked again", func(t *testing.T) {
		r := newTestResidency(t)
		slot := r.Join(50_000)
		for range 20 { // a loop over one and a half capacities: LRU never hits
			prompts(r, slot, numbers(0, 75)...)
		}
		if got := r.Regret(slot); got < 0.85 || got >= 1 {
			t.Errorf("regret %v, want nearly 1", got)
		}
	})
	t.Run("held elsewhere", func(t *testing.T) {
		r := newTestResidency(t)
		slot, other := r.Join(50_000), r.Join(1_000_000)
		prompts(r, other, numbers(0, 75)...)
		for range 20 {
			prompts(r, slot, numbers(0, 75)...)
		}
		if got := r.Regret(slot); got != 0 {
			t.Errorf("regret %v, want 0", got)
		}
	})
	t.Run("failed attempts", func(t *testing.T) {
		r := newTestResidency(t)
		slot := r.Join(50_000)
		prompts(r, slot, numbers(0, 75)...)
		for range 20 {
			for name := range uint64(10) {
				r.Book(start, slot, chain(name, 10, 100)).Undo()
			}
		}
		if got := r.Regret(slot); got != 0 {
			t.Errorf("regret %v, want 0", got)
		}
	})
	t.Run("charged to who evicted", func(t *testing.T) {
		r := newTestResidency(t)
		slot, other := r.Join(50_000), r.Join(1_000_000)
		prompts(r, slot, numbers(0, 75)...)
		prompts(r, other, numbers(0, 15)...) // asked again at another replica
		if r.Regret(slot) < 0.1 || r.Regret(other) != 0 {
			t.Errorf("regret %v and %v, want the first alone", r.Regret(slot), r.Regret(other))
		}
		r.Forget(slot)
		prompts(r, slot, numbers(100, 75)...)
		if got := r.Regret(slot); got != 0 {
			t.Errorf("regret %v after forgetting, want 0", got)
		}
	})
	t.Run("fades", func(t *testing.T) {
		r := newTestResidency(t)
		slot := r.Join(50_000)
		for range 5 {
			prompts(r, slot, numbers(0, 75)...)
		}
		prompts(r, slot, numbers(1000, 500)...)
		if got := r.Regret(slot); got > 0.05 {
			t.Errorf("regret %v long after, want nearly 0", got)
		}
	})
}

func TestRegretOfTheFleet(t *testing.T) {
	r := newTestResidency(t)
	slot, fresh := r.Join(50_000), r.Join(50_000)
	for range 20 {
		prompts(r, slot, numbers(0, 75)...)
	}
	if got := r.Regret(fresh); got != 0 {
		t.Errorf("regret %v of a replica that is not full, want 0", got)
	}
	prompts(r, fresh, numbers(1000, 51)...)
	if got := r.Regret(fresh); got < 0.5 {
		t.Errorf("regret %v of a replica just full, want about the fleet's %v", got, r.Regret(slot))
	}
}

func TestFleetRegretIsAlikeWhereCachesAreFull(t *testing.T) {
	r := newTestResidency(t)
	looping, passing, fresh := r.Join(50_000), r.Join(50_000), r.Join(50_000)
	for i := range uint64(20) {
		prompts(r, looping, numbers(0, 75)...)
		prompts(r, passing, numbers(1000+75*i, 75)...) // none of which comes back
	}
	if own := r.Regret(passing); own > 0.2 {
		t.Fatalf("regret %v of a replica to which nothing comes back, want nearly 0", own)
	}
	got := r.FleetRegret(passing)
	if other := r.FleetRegret(looping); got != other || got < 0.3 || got > 0.7 {
		t.Errorf("the fleet's regret is %v and %v on two replicas, want the same and about a half", got, other)
	}
	if got := r.FleetRegret(fresh); got != 0 {
		t.Errorf("the fleet's regret is %v on a replica with room, want 0", got)
	}
}

func TestRegretIsTheBookedReplicas(t *testing.T) {
	r := newTestResidency(t)
	first, booked := r.Join(50_000), r.Join(50_000)
	prompts(r, first, numbers(0, 75)...)
	prompts(r, booked, numbers(0, 75)...)
	other := r.cache(first).regret.asked.Load()
	prompts(r, booked, numbers(0, 10)...)
	if got := r.cache(first).regret.asked.Load(); got != other {
		t.Errorf("%d tokens counted for the other replica", got-other)
	}
	if got := r.cache(booked).regret.asked.Load(); got < 8000 {
		t.Errorf("%d tokens counted for the booked replica, want nearly 10000", got)
	}
}

// TestEvictedTokens follows what counts as evicted: nothing while there is room,
// and no answer twice, when the next turn brings it back as a part of the prompt.
func TestEvictedTokens(t *testing.T) {
	r := newTestResidency(t)
	slot := r.Join(64_000)
	evicted := func(want int64) {
		t.Helper()
		if got := r.cache(slot).regret.evicted.Load(); got > want || got < want-want/50 { // it fades a little
			t.Fatalf("%d tokens evicted, want %d", got, want)
		}
	}
	prompts(r, slot, numbers(0, 62)...)
	turn := chain(100, 10, 100)
	r.Book(start, slot, turn).Release(500)
	evicted(0)
	r.Book(start, slot, chain(101, 1, 1000)).Release(0) // 500 fit
	evicted(500)
	turn = append(turn, Block{Key: 1, Tokens: 1300, Reply: true}, Block{Key: 2, Tokens: 1600, Reply: true}, Block{Key: 3, Tokens: 1620})
	claim := r.Book(start, slot, turn)
	claim.Confirm()
	evicted(620) // of the reply, 100 were not known, and 20 are new
}
