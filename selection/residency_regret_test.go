package selection

import "testing"

// prompts sends prompts of 1000 tokens through a replica, one after the other.
func prompts(r *Residency, slot Slot, names ...uint64) {
	for _, name := range names {
		r.Book(slot, chain(name, 10, 100)).Release(0)
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
				r.Book(slot, chain(name, 10, 100)).Undo()
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
