package selection

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestResidencyAgainstOracle drives a residency on each store and the oracle
// with the same calls. The two stores must agree exactly, and with the oracle
// within the resolution of stack distances.
func TestResidencyAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		t.Repeat(map[string]func(*rapid.T){
			"book":    w.book,
			"confirm": w.confirm,
			"release": w.release,
			"undo":    w.undo,
			"rebook":  w.undone,
			"traffic": w.traffic,
			"forget":  w.forget,
			"":        w.check,
		})
	})
}

// world holds the models under comparison.
type world struct {
	models []*Residency // map store, ristretto
	oracle oracle
	claims []worldClaim
}

type worldClaim struct {
	models []*Claim
	oracle *oracleClaim
	void   bool
}

func newWorld(t *rapid.T) *world {
	store, err := NewRistrettoStore(MinStoreBytes)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{models: []*Residency{NewResidency(NewMapStore()), NewResidency(store)}}
	for range rapid.IntRange(1, 4).Draw(t, "replicas") {
		capacity := rapid.SampledFrom([]int{3000, 6000, 12000, 40000}).Draw(t, "capacity")
		w.oracle.join(capacity)
		for _, r := range w.models {
			r.Join(capacity)
		}
	}
	return w
}

func (w *world) close() {
	for _, r := range w.models {
		r.Close()
	}
}

// drawPrompt walks down a tree of blocks. A block's properties follow from its
// key, as they do in a chain of hashes.
func drawPrompt(t *rapid.T) []Block {
	path := rapid.SliceOfN(rapid.SampledFrom([]uint64{0, 0, 0, 1, 2}), 1, 14).Draw(t, "path")
	blocks := make([]Block, len(path))
	key, tokens := uint64(0), uint32(0)
	for i, branch := range path {
		key = mix(key + branch + 1)
		tokens += 40 + uint32(key%120)
		blocks[i] = Block{Key: key, Tokens: tokens, Reply: key%7 < 3 && i > 0}
	}
	return blocks
}

func (w *world) drawSlot(t *rapid.T) Slot {
	return Slot(rapid.IntRange(0, len(w.oracle.replicas)-1).Draw(t, "slot"))
}

func (w *world) open(slot Slot, blocks []Block) worldClaim {
	c := worldClaim{oracle: w.oracle.book(slot, blocks)}
	for _, r := range w.models {
		c.models = append(c.models, r.Book(start, slot, blocks))
	}
	return c
}

func (w *world) book(t *rapid.T) {
	w.claims = append(w.claims, w.open(w.drawSlot(t), drawPrompt(t)))
}

// drawClaim picks an open claim.
func (w *world) drawClaim(t *rapid.T) *worldClaim {
	if len(w.claims) == 0 {
		t.Skip("no open claim")
	}
	return &w.claims[rapid.IntRange(0, len(w.claims)-1).Draw(t, "claim")]
}

// drop removes a claim; its methods are called once more, in vain.
func (w *world) drop(c *worldClaim) {
	for _, m := range c.models {
		m.Confirm()
		m.Undo()
		m.Release(99)
	}
	*c = w.claims[len(w.claims)-1]
	w.claims = w.claims[:len(w.claims)-1]
}

func (w *world) confirm(t *rapid.T) {
	c := w.drawClaim(t)
	for _, m := range c.models {
		m.Confirm()
	}
	if !c.void {
		c.oracle.confirm()
	}
}

func (w *world) release(t *rapid.T) {
	c := w.drawClaim(t)
	w.finish(c, rapid.IntRange(0, oracleMaxBlock).Draw(t, "generated"))
	w.drop(c)
}

func (w *world) finish(c *worldClaim, generated int) {
	for _, m := range c.models {
		m.Release(generated)
	}
	if !c.void {
		w.oracle.release(c.oracle, generated)
	}
}

func (w *world) undo(t *rapid.T) {
	c := w.drawClaim(t)
	w.revert(c)
	w.drop(c)
}

func (w *world) revert(c *worldClaim) {
	for _, m := range c.models {
		m.Undo()
	}
	if !c.void {
		w.oracle.undo(c.oracle)
	}
}

// undone books and undoes at once: the models must be exactly as before.
func (w *world) undone(t *rapid.T) {
	slot, blocks := w.drawSlot(t), drawPrompt(t)
	before := w.snapshot(blocks)
	c := w.open(slot, blocks)
	w.revert(&c)
	if after := w.snapshot(blocks); after != before {
		t.Fatalf("undo left a trace:\n%s\n%s", before, after)
	}
}

// snapshot describes all that can be seen of the models.
func (w *world) snapshot(blocks []Block) string {
	s := ""
	for _, r := range w.models {
		into := make([]Match, r.Slots())
		ghost := r.Match(blocks, into)
		s += fmt.Sprint(into, ghost)
		for slot := range into {
			re := &r.cache(Slot(slot)).recency
			s += fmt.Sprint(r.Held(Slot(slot)), re.pinned, re.total, re.buckets)
		}
	}
	return s
}

// traffic fills caches: requests that come and go.
func (w *world) traffic(t *rapid.T) {
	slot := w.drawSlot(t)
	for range rapid.IntRange(1, 12).Draw(t, "requests") {
		c := w.open(slot, drawPrompt(t))
		w.finish(&c, rapid.IntRange(0, oracleMaxBlock).Draw(t, "generated"))
	}
}

func (w *world) forget(t *rapid.T) {
	slot := w.drawSlot(t)
	for _, r := range w.models {
		r.Forget(slot)
	}
	w.oracle.replicas[slot].forget()
	for i := range w.claims {
		if w.claims[i].oracle.replica == w.oracle.replicas[slot] {
			w.claims[i].void = true
		}
	}
}

func (w *world) check(t *rapid.T) {
	blocks := drawPrompt(t)
	results := make([][]Match, len(w.models))
	ghosts := make([]uint32, len(w.models))
	for i, r := range w.models {
		results[i] = make([]Match, r.Slots())
		ghosts[i] = r.Match(blocks, results[i])
	}
	if fmt.Sprint(results[0], ghosts[0]) != fmt.Sprint(results[1], ghosts[1]) {
		t.Fatalf("stores differ: %v and %v", results[0], results[1])
	}
	var held, known span[int]
	for slot, replica := range w.oracle.replicas {
		m := results[0][slot]
		inside(t, "sure", m.Sure, replica.match(blocks, levelSure))
		inside(t, "pending", m.Pending, replica.match(blocks, levelPending))
		maybe, ghost := replica.match(blocks, levelMaybe), replica.match(blocks, levelGhost)
		inside(t, "maybe", m.Maybe, maybe)
		held = span[int]{max(held.low, maybe.low), max(held.high, maybe.high)}
		known = span[int]{max(known.low, ghost.low), max(known.high, ghost.high)}
		if m.Sure > m.Pending || m.Pending > m.Maybe {
			t.Fatalf("not in order: %+v", m)
		}
		if got, want := w.models[0].Held(Slot(slot)), replica.held(); got != want {
			t.Fatalf("slot %d holds %d tokens, want %d", slot, got, want)
		}
		if got, want := w.models[0].InUse(Slot(slot)), replica.inUse(); got != want {
			t.Fatalf("%d tokens are in use on slot %d, want %d", got, slot, want)
		}
	}
	inside(t, "ghost", ghosts[0], span[int]{max(0, known.low-held.high), max(0, known.high-held.low)})
}

func inside(t *rapid.T, what string, got uint32, want span[int]) {
	if int(got) < want.low || int(got) > want.high {
		t.Fatalf("%s match of %d tokens, want %d to %d", what, got, want.low, want.high)
	}
}
