package engine

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestStepTime(t *testing.T) {
	p := H100x8B
	tests := []struct {
		name string
		load load
		want time.Duration
	}{
		{"one sequence decoding 1,000 tokens", load{decoding: 1, kv: 1000}, 6*ms + 30*time.Microsecond + 50*time.Microsecond},
		{"a short prompt hides behind the weights", load{prefill: 40, attention: 800}, 6 * ms},
		{"a long prompt", load{prefill: 8000, attention: 32e6}, 4*ms + 200*ms + 35_200*time.Microsecond},
		{"both", load{prefill: 8000, decoding: 10, kv: 50_000}, 204*ms + 300*time.Microsecond + 2500*time.Microsecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.stepTime(tt.load); got != tt.want {
				t.Errorf("stepTime = %v, want %v", got, tt.want)
			}
		})
	}
	slow := p.Slowed(3)
	if got, want := slow.stepTime(tests[3].load), 3*tests[3].want; got != want {
		t.Errorf("slowed three times = %v, want %v", got, want)
	}
}

// TestHandWorkedSchedule follows two requests through chunked prefill under a
// budget of 16 tokens.
func TestHandWorkedSchedule(t *testing.T) {
	p := tiny()
	p.PerAttention = 0
	e := New(p)
	long := &Request{Prompt: 20, Output: 2}
	short := &Request{Prompt: 3, Output: 3}
	for _, r := range []*Request{long, short} {
		if err := e.Submit(0, r); err != nil {
			t.Fatal(err)
		}
	}
	drain(t, e)
	// Step 1: 16 tokens of the long one, 4+16 = 20 ms.
	// Step 2: its last 4 and all 3 of the short one, 4+7 = 11 ms: both first tokens.
	// Step 3: both decode with 21 and 4 tokens, 6 + 0.2 + 0.025 ms: the long one ends.
	// Step 4: the short one decodes with 5 tokens, 6 + 0.1 + 0.005 ms.
	third := 31*ms + 6225*time.Microsecond
	fourth := third + 6105*time.Microsecond
	if long.FirstToken != 31*ms || long.Finished != third {
		t.Errorf("long: first token %v, finished %v, want 31ms, %v", long.FirstToken, long.Finished, third)
	}
	if short.Admitted != 20*ms || short.FirstToken != 31*ms || short.Finished != fourth {
		t.Errorf("short: admitted %v, first token %v, finished %v, want 20ms, 31ms, %v",
			short.Admitted, short.FirstToken, short.Finished, fourth)
	}
	s := e.Stats()
	if s.ComputedTokens != 23 || s.GeneratedTokens != 5 || s.QueueTime != 20*ms || s.PrefillTime != 42*ms || s.BusyTime != fourth {
		t.Errorf("stats = %+v", s)
	}
}

func TestPreemptionPutsTheLastSequenceBack(t *testing.T) {
	e := New(tiny())                                             // 8 blocks of 4
	first := &Request{Keys: chain(1, 8), Prompt: 15, Output: 15} // grows to 8 blocks
	second := &Request{Keys: chain(2, 8), Prompt: 12, Output: 4} // 4 blocks with its output
	for _, r := range []*Request{first, second} {
		if err := e.Submit(0, r); err != nil {
			t.Fatal(err)
		}
	}
	drain(t, e)
	if first.Preemptions != 0 || second.Preemptions != 1 {
		t.Errorf("preempted %d and %d times, want 0 and 1", first.Preemptions, second.Preemptions)
	}
	if s := e.Stats(); second.Cached != 0 || second.Admitted != 0 || s.QueriedTokens != 27 {
		t.Errorf("a second admission counts like a first: cached %d, admitted %v, queried %d", second.Cached, second.Admitted, s.QueriedTokens)
	}
	if first.Generated != 15 || second.Generated != 4 {
		t.Errorf("generated %d and %d, want 15 and 4", first.Generated, second.Generated)
	}
	if second.Finished <= first.Finished {
		t.Errorf("the preempted sequence finished at %v, before the other at %v", second.Finished, first.Finished)
	}
}

func TestMaxSequences(t *testing.T) {
	p := tiny()
	p.MaxSequences = 2
	e := New(p)
	for range 3 {
		if err := e.Submit(0, &Request{Prompt: 2, Output: 5}); err != nil {
			t.Fatal(err)
		}
	}
	e.Advance(e.NextStep())
	if s := e.Stats(); s.Running != 2 || s.Waiting != 1 {
		t.Errorf("%d running, %d waiting, want 2 and 1", s.Running, s.Waiting)
	}
	drain(t, e)
}

func TestSubmitRefusesWhatNeverFits(t *testing.T) {
	e := New(tiny())
	for _, r := range []*Request{{Prompt: 30, Output: 3}, {Prompt: 0, Output: 1}, {Prompt: 1, Output: 0}} {
		if err := e.Submit(0, r); err == nil {
			t.Errorf("%d + %d tokens: no error", r.Prompt, r.Output)
		}
	}
	if e.NextEvent() != Never {
		t.Error("a refused request left work behind")
	}
}

func TestResetDropsEverything(t *testing.T) {
	e := New(tiny())
	keys := chain(1, 2)
	serve(t, e, &Request{Keys: keys, Prompt: 9, Output: 1})
	now := e.clock + time.Second
	for range 6 {
		if err := e.Submit(now, &Request{Keys: keys, Prompt: 9, Output: 5}); err != nil {
			t.Fatal(err)
		}
	}
	now = e.NextStep()
	e.Advance(now)
	if n := len(e.Reset(now)); n != 6 {
		t.Errorf("dropped %d requests, want 6", n)
	}
	if e.NextEvent() != Never || e.Stats() != (Stats{}) {
		t.Errorf("after a reset: next event %v, stats %+v", e.NextEvent(), e.Stats())
	}
	cold := &Request{Keys: keys, Prompt: 9, Output: 1}
	serve(t, e, cold)
	if cold.Cached != 0 {
		t.Errorf("cached = %d after a reset, want 0", cold.Cached)
	}
}

func TestSlowActsOnStepsToCome(t *testing.T) {
	e := New(tiny())
	r := &Request{Prompt: 4, Output: 3} // 8 ms, then two steps of 6.1 ms and a little
	if err := e.Submit(0, r); err != nil {
		t.Fatal(err)
	}
	e.NextStep()
	e.Slow(1*ms, 10)
	drain(t, e)
	first := time.Duration(8*ms) + 80 // attention: 4 tokens, 2 on average before each, 10 ns
	if want := first + 10*(2*6100*time.Microsecond+11*time.Microsecond); r.FirstToken != first || r.Finished != want {
		t.Errorf("first token %v, finished %v, want %v, %v", r.FirstToken, r.Finished, first, want)
	}
}
