package selection

import "testing"

// TestDoubtSurvivesMerging uses a hot prompt again and again under doubt, so
// that buckets are merged: what was used since must outlast the disbelief.
func TestDoubtSurvivesMerging(t *testing.T) {
	r := newTestResidency(t)
	slot := r.Join(64_000)
	old, fresh, hot := chain(1, 2, 100), chain(2, 2, 100), chain(3, 20, 100)
	r.Book(start, slot, old).Release(0)
	r.Doubt(slot)
	r.Book(start, slot, fresh).Release(0)
	for range 1000 {
		r.Book(start, slot, hot).Release(0)
	}
	expect(t, r, old, slot, Match{Maybe: 200})
	expect(t, r, fresh, slot, Match{Sure: 200, Pending: 200, Maybe: 200})
	r.Disbelieve(slot)
	expect(t, r, old, slot, Match{})
	expect(t, r, fresh, slot, Match{Sure: 200, Pending: 200, Maybe: 200})
	expect(t, r, hot, slot, Match{Sure: 2000, Pending: 2000, Maybe: 2000})
	if held := r.Held(slot); held != 2200 {
		t.Errorf("holds %d tokens, want 2200", held)
	}
}

func TestDoubtEnds(t *testing.T) {
	r := newTestResidency(t)
	slot := r.Join(64_000)
	prompt := chain(1, 2, 100)
	r.Book(start, slot, prompt).Release(0)
	r.Doubt(slot)
	r.Believe(slot)
	r.Disbelieve(slot) // too late
	expect(t, r, prompt, slot, Match{Sure: 200, Pending: 200, Maybe: 200})

	open := r.Book(start, slot, prompt)
	r.Doubt(slot)
	r.Disbelieve(slot)
	open.Undo()
	expect(t, r, prompt, slot, Match{})
	r.Doubt(slot)
	r.Forget(slot)
	r.Book(start, slot, prompt).Release(0)
	expect(t, r, prompt, slot, Match{Sure: 200, Pending: 200, Maybe: 200})
}
