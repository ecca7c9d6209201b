package engine

import (
	"testing"
	"time"
)

// What is foretold of a request must be what becomes of it.
func TestPeeking(t *testing.T) {
	for _, p := range []Profile{H100x8B, LlamaCpp} {
		t.Run(p.Name, func(t *testing.T) {
			keys := make([]uint64, 1024)
			for i := range keys {
				keys[i] = uint64(i + 1)
			}
			e := New(p)
			now := time.Duration(0)
			for i, prompt := range []int{1600, 4800, 3200, 9600, 100} {
				r := &Request{Keys: keys[:prompt/p.BlockSize], Prompt: prompt, Output: 1 + i}
				cached, start, admits := e.Lookup(r), now+e.Backlog(now), e.Admits(r)
				if err := e.Submit(now, r); err != nil {
					t.Fatal(err)
				}
				e.NextEvent()
				if now += 150 * time.Millisecond; i == 2 {
					e.Advance(now)
					continue // the next one comes while this one computes
				}
				now += time.Minute
				e.Advance(now)
				if r.Cached != cached {
					t.Errorf("prompt %d found %d tokens, foretold %d", i, r.Cached, cached)
				}
				first := start + p.PrefillTime(cached, prompt-cached)
				if off := (r.FirstToken - first).Abs(); off > 60*time.Millisecond {
					t.Errorf("prompt %d got its first token %v off the foretold %v", i, off, first)
				}
				if !admits {
					t.Errorf("prompt %d would not be admitted", i)
				}
			}
		})
	}
}

func TestAdmits(t *testing.T) {
	e := New(LlamaCpp)
	for i := range 4 {
		r := &Request{Prompt: 1000, Output: 1000}
		if !e.Admits(r) {
			t.Fatalf("request %d would not be admitted to one of four slots", i)
		}
		if err := e.Submit(time.Duration(i), r); err != nil {
			t.Fatal(err)
		}
		e.Advance(time.Duration(i+1) * 10 * time.Second / 10)
	}
	if e.Admits(&Request{Prompt: 1000, Output: 1000}) {
		t.Error("a fifth request would be admitted to one of four slots")
	}
}
