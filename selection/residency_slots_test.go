package selection

import "testing"

func TestSlotsAreReused(t *testing.T) {
	r := newTestResidency(t)
	a, b, c := r.Join(10_000), r.Join(10_000), r.Join(10_000)
	prompt := chain(1, 10, 100)
	open := r.Book(start, b, prompt)
	r.Book(start, c, prompt).Release(0)
	r.Leave(b)
	if got := r.Join(20_000); got != b {
		t.Errorf("joined slot %d, want %d again", got, b)
	}
	expect(t, r, prompt, b, Match{})
	expect(t, r, prompt, c, Match{Sure: 1000, Pending: 1000, Maybe: 1000})

	second := r.Book(start, b, prompt[:5])
	open.Confirm() // of the replica that left
	expect(t, r, prompt, b, Match{Sure: 0, Pending: 500, Maybe: 500})
	open.Release(100)
	expect(t, r, prompt, b, Match{Sure: 0, Pending: 500, Maybe: 500})
	second.Undo()
	expect(t, r, prompt, b, Match{})
	if held := r.Held(b); held != 0 {
		t.Errorf("holds %d tokens, want 0", held)
	}
	if got := r.Join(10_000); got != c+1 || r.Slots() != 4 {
		t.Errorf("joined slot %d of %d, want %d", got, r.Slots(), c+1)
	}
	_ = a
}

func TestForgetWithOpenClaims(t *testing.T) {
	r := newTestResidency(t)
	slot := r.Join(10_000)
	prompt := chain(1, 10, 100)
	r.Book(start, slot, prompt).Release(50)
	released, undone, confirmed := r.Book(start, slot, prompt), r.Book(start, slot, prompt), r.Book(start, slot, prompt)
	confirmed.Confirm()
	r.Forget(slot)
	expect(t, r, prompt, slot, Match{})
	released.Release(10)
	undone.Undo()
	confirmed.Confirm()
	confirmed.Release(10)
	expect(t, r, prompt, slot, Match{})
	if held := r.Held(slot); held != 0 {
		t.Errorf("holds %d tokens, want 0", held)
	}
}

func TestUnknownSlots(t *testing.T) {
	r := newTestResidency(t)
	claim := r.Book(start, 7, chain(1, 3, 100))
	claim.Confirm()
	claim.Release(1)
	claim.Undo()
	r.Forget(7)
	r.Leave(7)
	r.SetCapacity(7, 100)
	if r.Held(7) != 0 || r.Turnover(7, start) != 0 || r.Slots() != 0 {
		t.Error("a slot that nobody joined is not empty")
	}
}

func TestSetCapacity(t *testing.T) {
	r := newTestResidency(t)
	slot := r.Join(10_000)
	prompt := chain(1, 80, 100)
	r.Book(start, slot, prompt).Release(0)
	expect(t, r, prompt, slot, Match{Sure: 8000, Pending: 8000, Maybe: 8000})
	r.SetCapacity(slot, 4_000)
	got, ghost := match(t, r, prompt)
	if m := got[slot]; m.Sure < 3700 || m.Sure > 3800 || m.Maybe < 4200 || m.Maybe > 4400 || ghost != 8000-m.Maybe {
		t.Errorf("match %+v and ghost %d at half the size", m, ghost)
	}
	if held := r.Held(slot); held != 4000 {
		t.Errorf("holds %d tokens, want 4000", held)
	}
	r.SetCapacity(slot, 20_000)
	expect(t, r, prompt, slot, Match{Sure: 8000, Pending: 8000, Maybe: 8000})
}

func TestClose(t *testing.T) {
	r := NewResidency(newRistretto(t, MinStoreBytes))
	slot := r.Join(10_000)
	prompt := chain(1, 10, 100)
	released, undone := r.Book(start, slot, prompt), r.Book(start, slot, prompt)
	r.Close()
	r.Close()
	expect(t, r, prompt, slot, Match{})
	late := r.Book(start, slot, prompt)
	for _, c := range []*Claim{released, undone, late} {
		c.Confirm()
	}
	released.Release(10)
	undone.Undo()
	late.Release(10)
	r.Forget(slot)
	r.Leave(slot)
	if s := r.Stats(); s != (Stats{}) {
		t.Errorf("stats after close: %+v", s)
	}
}
