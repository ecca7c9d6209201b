package selection

import "testing"

// chain makes a prompt of count blocks of size tokens each. Chains with the
// same name share keys block by block.
func chain(name uint64, count int, size uint32) []Block {
	blocks := make([]Block, count)
	for i := range blocks {
		blocks[i] = Block{Key: mix(name<<32 + uint64(i)), Tokens: size * uint32(i+1)}
	}
	return blocks
}

// mix spreads small numbers over 64 bits, as splitmix64 does.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func match(t *testing.T, r *Residency, blocks []Block) ([]Match, uint32) {
	t.Helper()
	into := make([]Match, r.Slots())
	ghost := r.Match(blocks, into)
	return into, ghost
}

func newTestResidency(t *testing.T) *Residency {
	t.Helper()
	r := NewResidency(NewMapStore())
	t.Cleanup(r.Close)
	return r
}

func expect(t *testing.T, r *Residency, blocks []Block, slot Slot, want Match) {
	t.Helper()
	got, _ := match(t, r, blocks)
	if got[slot].Ghost < got[slot].Maybe {
		t.Errorf("slot %d matches %+v, want no fewer ghosts", slot, got[slot])
	}
	if got[slot].Ghost = want.Ghost; got[slot] != want {
		t.Errorf("slot %d matches %+v, want %+v", slot, got[slot], want)
	}
}

func TestClaimLife(t *testing.T) {
	r := newTestResidency(t)
	a, b := r.Join(100_000), r.Join(100_000)
	prompt := chain(1, 10, 100)

	claim := r.Book(start, b, prompt)
	expect(t, r, prompt, a, Match{})
	expect(t, r, prompt, b, Match{Pending: 1000, Maybe: 1000})
	claim.Confirm()
	expect(t, r, prompt, b, Match{Sure: 1000, Pending: 1000, Maybe: 1000})
	claim.Release(50)
	expect(t, r, prompt, b, Match{Sure: 1000, Pending: 1000, Maybe: 1000})
	if got := r.Held(b); got != 1050 {
		t.Errorf("held %d tokens, want 1050", got)
	}

	next := append(chain(1, 10, 100), Block{Key: 77, Tokens: 1040, Reply: true}, Block{Key: 78, Tokens: 1100})
	expect(t, r, next, b, Match{Sure: 1040, Pending: 1040, Maybe: 1040})
	claim = r.Book(start, b, next)
	expect(t, r, next, b, Match{Sure: 1040, Pending: 1100, Maybe: 1100})
	claim.Undo()
	expect(t, r, next, b, Match{Sure: 1040, Pending: 1040, Maybe: 1040})
	if got := r.Held(b); got != 1050 {
		t.Errorf("held %d tokens after undo, want 1050", got)
	}
	r.Book(start, b, next).Release(0)
	if got := r.Held(b); got != 1100 {
		t.Errorf("held %d tokens after the next turn, want 1100", got)
	}

	r.Forget(b)
	expect(t, r, next, b, Match{})
}
