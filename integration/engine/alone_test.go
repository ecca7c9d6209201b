package engine

import (
	"testing"
	"time"
)

// An engine with nothing else to do takes as long as Alone says.
func TestAloneAgreesWithTheEngine(t *testing.T) {
	for _, p := range Profiles() {
		for _, c := range []struct{ cached, more, output int }{
			{0, 100, 1}, {0, 15_000, 40}, {1600, 1, 7}, {1600, 2, 300}, {4800, p.TokenBudget, 20}, {1600, p.TokenBudget + 1, 20},
		} {
			keys := make([]uint64, (c.cached+c.more+c.output)/p.BlockSize)
			for i := range keys {
				keys[i] = uint64(i + 1)
			}
			if c.cached+c.more+c.output > p.MaxTokens() {
				continue
			}
			e := New(p)
			now := time.Duration(0)
			run := func(r *Request) *Request {
				if err := e.Submit(now, r); err != nil {
					t.Fatal(err)
				}
				now += time.Hour
				e.Advance(now)
				return r
			}
			if c.cached > 0 { // warm it
				run(&Request{Keys: keys[:c.cached/p.BlockSize], Prompt: c.cached, Output: 1})
			}
			r := run(&Request{Keys: keys, Prompt: c.cached + c.more, Output: c.output})
			first, end := p.Alone(r.Cached, r.Prompt, r.Output)
			if r.Cached != c.cached {
				t.Errorf("%s: %d tokens cached, want %d", p.Name, r.Cached, c.cached)
			}
			if r.FirstToken-r.Submitted != first || r.Finished-r.Submitted != end {
				t.Errorf("%s, %+v: alone %v and %v, in the engine %v and %v",
					p.Name, c, first, end, r.FirstToken-r.Submitted, r.Finished-r.Submitted)
			}
		}
	}
}
