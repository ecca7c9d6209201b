package selection

import "testing"

// TestMatchHoles takes blocks out of the middle of a chain: what follows a hole
// is of no use, whatever the search happens to look at.
func TestMatchHoles(t *testing.T) {
	for hole := range 40 {
		store := NewMapStore()
		r := NewResidency(store)
		slot := r.Join(1_000_000)
		prompt := chain(1, 40, 100)
		r.Book(start, slot, prompt).Release(0)
		for _, b := range prompt[hole:min(hole+20, 40)] {
			store.delete(store.get(b.Key))
		}
		got, _ := match(t, r, prompt)
		if want := uint32(100 * hole); got[slot].Sure != want || got[slot].Maybe != want {
			t.Errorf("hole at %d: match %+v, want %d", hole, got[slot], want)
		}
	}
}

// TestMatchHoleOfOne lets one replica miss a block that the search looks at,
// while another one's match ends later, so that the search goes on behind it.
func TestMatchHoleOfOne(t *testing.T) {
	r := newTestResidency(t)
	a, b := r.Join(1_000_000), r.Join(1_000_000)
	prompt := chain(1, 40, 100)
	r.Book(start, a, prompt).Release(0)
	r.Book(start, b, prompt[:25]).Release(0)
	r.store.get(prompt[19].Key).remove(a)
	expect(t, r, prompt, a, Match{Sure: 1900, Pending: 1900, Maybe: 1900})
	expect(t, r, prompt, b, Match{Sure: 2500, Pending: 2500, Maybe: 2500})
}

func TestMatchInputs(t *testing.T) {
	r := newTestResidency(t)
	a, b := r.Join(10_000), r.Join(10_000)
	prompt := chain(1, 3, 100)
	r.Book(start, a, prompt).Release(0)
	r.Book(start, b, prompt[:2]).Release(0)

	short := []Match{{Sure: 9, Pending: 9, Maybe: 9}}
	if r.Match(prompt, short); short[0] != (Match{Sure: 300, Pending: 300, Maybe: 300, Ghost: 300}) {
		t.Errorf("short result %+v", short)
	}
	long := []Match{{}, {}, {Sure: 7, Pending: 7, Maybe: 7}}
	if r.Match(prompt, long); long[1] != (Match{Sure: 200, Pending: 200, Maybe: 200, Ghost: 200}) || long[2] != (Match{}) {
		t.Errorf("long result %+v", long)
	}
	if ghost := r.Match(nil, long); ghost != 0 || long[0] != (Match{}) {
		t.Errorf("match of the empty prompt: %+v", long)
	}
	r.Match(prompt, nil)
	disorder := []Block{{Key: 1, Tokens: 100, Reply: false}, {Key: 2, Tokens: 50, Reply: true}, {Key: 2, Tokens: 0}}
	r.Book(start, a, disorder[:1]).Release(10)
	r.Match(disorder, long)
	r.Book(start, a, disorder).Undo()
	r.Book(start, a, disorder).Release(-5)
}

func TestMatchGhost(t *testing.T) {
	r := newTestResidency(t)
	a, b := r.Join(10_000), r.Join(10_000)
	prompt := chain(1, 10, 100)
	r.Book(start, a, prompt).Release(0)
	r.Book(start, b, prompt[:4]).Release(0)
	if _, ghost := match(t, r, prompt); ghost != 0 {
		t.Errorf("%d ghost tokens before any eviction", ghost)
	}
	r.Book(start, a, chain(2, 120, 100)).Release(0)
	got, ghost := match(t, r, prompt)
	if got[a] != (Match{Ghost: 1000}) || got[b].Sure != 400 || ghost != 600 {
		t.Errorf("matches %+v, ghost %d, want 600 beyond the 400 that slot %d holds", got, ghost, b)
	}
	r.Book(start, a, chain(3, 120, 100)).Release(0)
	if _, ghost := match(t, r, prompt); ghost != 0 {
		t.Errorf("%d ghost tokens after twice the capacity", ghost)
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	r := newTestResidency(t)
	slot := r.Join(1_000_000)
	prompt := chain(1, 300, 400)
	r.Book(start, slot, prompt[:200]).Release(100)
	into := make([]Match, r.Slots())
	if allocs := testing.AllocsPerRun(100, func() { r.Match(prompt, into) }); allocs > 0.5 {
		t.Errorf("%v allocations per match", allocs)
	}
}
