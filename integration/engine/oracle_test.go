package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// naiveCache is the paged cache in its plainest form: blocks in one slice, in
// the order in which they will be reused, found by looking at each.
type naiveCache struct {
	size   int
	order  []*naiveBlock // free ones first to last, held ones anywhere
	held   map[*Request][]*naiveBlock
	blocks int

	admitted []*Request // in order, again and again
}

type naiveBlock struct {
	key  uint64
	refs int
	used bool // ever

	writer int // its place in the order of admissions
}

func newNaiveCache(p Profile) *naiveCache {
	c := &naiveCache{size: p.BlockSize, held: map[*Request][]*naiveBlock{}, blocks: p.Blocks}
	for range p.Blocks {
		c.order = append(c.order, &naiveBlock{})
	}
	return c
}

func (c *naiveCache) free() (n int) {
	for _, b := range c.order {
		if b.refs == 0 {
			n++
		}
	}
	return n
}

func (c *naiveCache) find(key uint64) *naiveBlock {
	for _, b := range c.order {
		if key != 0 && b.key == key {
			return b
		}
	}
	return nil
}

func (c *naiveCache) hits(r *Request) (hits []*naiveBlock) {
	for _, key := range r.Keys {
		b := c.find(key)
		if b == nil || (len(hits)+1)*c.size > r.tokens()-1 {
			break
		}
		hits = append(hits, b)
	}
	return hits
}

func (c *naiveCache) lookup(r *Request) int { return len(c.hits(r)) * c.size }

func (c *naiveCache) admit(r *Request) bool {
	hits := c.hits(r)
	for _, b := range hits {
		b.refs++
	}
	if (len(hits)+c.free())*c.size < r.tokens() {
		for _, b := range hits {
			b.refs--
		}
		return false
	}
	c.held[r], r.keyed = hits, len(hits)
	c.admitted = append(c.admitted, r)
	r.computed = len(hits) * c.size
	return true
}

func (c *naiveCache) grow(r *Request, tokens int) bool {
	missing := 0
	for (len(c.held[r])+missing)*c.size < tokens {
		missing++
	}
	if missing > c.free() {
		return false
	}
	for range missing {
		i := slices.IndexFunc(c.order, func(b *naiveBlock) bool { return b.refs == 0 && !b.used })
		if i < 0 {
			i = slices.IndexFunc(c.order, func(b *naiveBlock) bool { return b.refs == 0 })
		}
		*c.order[i] = naiveBlock{refs: 1, used: true}
		c.held[r] = append(c.held[r], c.order[i])
	}
	for i, b := range c.held[r] {
		if (i+1)*c.size <= tokens && i < len(r.Keys) && i >= r.keyed {
			c.write(b, r.Keys[i], c.lastAdmission(r))
		}
	}
	r.keyed = max(r.keyed, min(tokens/c.size, len(r.Keys)))
	return true
}

func (c *naiveCache) lastAdmission(r *Request) int {
	for i := len(c.admitted) - 1; i >= 0; i-- {
		if c.admitted[i] == r {
			return i
		}
	}
	return -1
}

func (c *naiveCache) write(b *naiveBlock, key uint64, writer int) {
	if twin := c.find(key); twin != nil && twin.refs > 0 && twin.writer > writer {
		return
	} else if twin != nil {
		twin.key = 0
	}
	b.key, b.writer = key, writer
}

func (c *naiveCache) release(r *Request) {
	for i := len(c.held[r]) - 1; i >= 0; i-- {
		b := c.held[r][i]
		b.refs--
		if b.refs == 0 {
			at := slices.Index(c.order, b)
			c.order = append(slices.Delete(c.order, at, at+1), b)
		}
	}
	delete(c.held, r)
	r.keyed = 0
}

func (c *naiveCache) steps([]*Request, int) int { return 1 } // so the engine never leaps
func (c *naiveCache) used() int                 { return (c.blocks - c.free()) * c.size }
func (c *naiveCache) clear() {
	for _, b := range c.order {
		b.key = 0
	}
}

// play submits and cancels as arrivals say and lists what happened. With
// everyStep it asks the engine at the end of every step, else only at events.
func play(t *testing.T, e *Engine, arrivals []arrival, everyStep bool) (log []string, results []*Request) {
	t.Helper()
	type action struct {
		at    time.Duration
		leave bool
		r     *Request
	}
	var actions []action
	for _, a := range arrivals {
		r := a.request
		results = append(results, &r)
		actions = append(actions, action{at: a.at, r: &r})
		if a.leaves != 0 {
			actions = append(actions, action{a.leaves, true, &r})
		}
	}
	slices.SortStableFunc(actions, func(a, b action) int { return int(a.at - b.at) })
	note := func(now time.Duration) {
		for _, ev := range e.Advance(now) {
			log = append(log, fmt.Sprintf("%v: request %d, event %d", ev.At, ev.Request.Tag, ev.Kind))
		}
	}
	next := e.NextEvent
	if everyStep {
		next = e.NextStep
	}
	for _, a := range actions {
		for at := next(); at <= a.at; at = next() {
			note(at)
		}
		note(a.at)
		if a.leave {
			e.Cancel(a.at, a.r)
		} else if err := e.Submit(a.at, a.r); err != nil {
			t.Fatal(err)
		}
	}
	for at := next(); at != Never; at = next() {
		note(at)
	}
	checkIdle(t, e)
	return log, results
}

// outcome is what a caller can see of a request.
func outcome(r *Request) string {
	return fmt.Sprintf("cached %d, generated %d, preempted %d, admitted %v, first token %v, finished %v",
		r.Cached, r.Generated, r.Preemptions, r.Admitted, r.FirstToken, r.Finished)
}

func compare(t *rapid.T, what string, got, want *Engine, logs [2][]string, results [2][]*Request) {
	if !slices.Equal(logs[0], logs[1]) {
		t.Fatalf("%s: events differ:\n%v\nwant\n%v", what, logs[0], logs[1])
	}
	for i, r := range results[0] {
		if g, w := outcome(r), outcome(results[1][i]); g != w {
			t.Fatalf("%s: request %d: %s\nwant %s", what, i, g, w)
		}
	}
	if g, w := got.Stats(), want.Stats(); g != w {
		t.Fatalf("%s: stats %+v\nwant %+v", what, g, w)
	}
}

// TestLeapsAndCacheAgreeWithTheNaiveForm plays the same traffic through an
// engine that leaps, one that is asked at every step, and one with the naive
// cache that never leaps.
func TestLeapsAndCacheAgreeWithTheNaiveForm(t *testing.T) {
	preemptions, cached := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p := tiny()
		p.Blocks = rapid.IntRange(4, 40).Draw(rt, "blocks")
		p.BlockSize = rapid.IntRange(1, 6).Draw(rt, "block size")
		p.MaxSequences = rapid.IntRange(1, 6).Draw(rt, "sequences")
		p.TokenBudget = rapid.IntRange(1, 40).Draw(rt, "budget")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		arrivals := traffic(rng, p, rapid.IntRange(1, 40).Draw(rt, "requests"))

		leaping, stepping, naive := New(p), New(p), New(p)
		naive.cache = newNaiveCache(p)
		var logs [3][]string
		var results [3][]*Request
		logs[0], results[0] = play(t, leaping, arrivals, false)
		logs[1], results[1] = play(t, stepping, arrivals, true)
		logs[2], results[2] = play(t, naive, arrivals, true)
		compare(rt, "leaping against stepping", leaping, stepping, [2][]string(logs[:2]), [2][]*Request(results[:2]))
		compare(rt, "paged against naive cache", stepping, naive, [2][]string(logs[1:]), [2][]*Request(results[1:]))
		preemptions += leaping.Stats().Preemptions
		cached += leaping.Stats().CachedTokens
	})
	if preemptions == 0 || cached == 0 {
		t.Errorf("%d preemptions and %d cached tokens: the traffic exercises nothing", preemptions, cached)
	}
}

func TestLeapsAgreeWithStepsOnSlots(t *testing.T) {
	cached := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := tiny()
		p.Slots = true
		p.MaxSequences = rapid.IntRange(1, 4).Draw(rt, "slots")
		p.Blocks = p.MaxSequences * rapid.IntRange(2, 12).Draw(rt, "blocks in a slot")
		p.TokenBudget = rapid.IntRange(1, 40).Draw(rt, "budget")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		arrivals := traffic(rng, p, rapid.IntRange(1, 40).Draw(rt, "requests"))
		leaping, stepping := New(p), New(p)
		var logs [2][]string
		var results [2][]*Request
		logs[0], results[0] = play(t, leaping, arrivals, false)
		logs[1], results[1] = play(t, stepping, arrivals, true)
		compare(rt, "leaping against stepping", leaping, stepping, logs, results)
		cached += leaping.Stats().CachedTokens
	})
	if cached == 0 {
		t.Error("no cached tokens: the traffic exercises nothing")
	}
}

// TestDecodeTimeIsTheSumOfItsSteps checks the closed forms against summation.
func TestDecodeTimeIsTheSumOfItsSteps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(Profiles()).Draw(rt, "profile").Slowed(rapid.Float64Range(0.2, 5).Draw(rt, "slow"))
		n := rapid.IntRange(1, 256).Draw(rt, "sequences")
		kv := rapid.IntRange(0, 400_000).Draw(rt, "kv")
		steps := rapid.IntRange(0, 300).Draw(rt, "steps")
		var sum time.Duration
		for i := range steps {
			sum += p.stepTime(load{decoding: n, kv: kv + i*n})
		}
		if got := p.decodeTime(steps, n, kv); got != sum {
			rt.Fatalf("decodeTime = %v, want %v", got, sum)
		}
		if got := p.decodeSteps(sum, n, kv); got != steps {
			rt.Fatalf("decodeSteps(%v) = %d, want %d", sum, got, steps)
		}
		if got := p.decodeSteps(sum-1, n, kv); steps > 0 && got != steps-1 {
			rt.Fatalf("decodeSteps(%v) = %d, want %d", sum-1, got, steps-1)
		}
	})
}
