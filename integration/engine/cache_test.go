package engine

import "testing"

func TestPrefixHits(t *testing.T) {
	base := chain(1, 8)
	tests := []struct {
		name   string
		first  Request
		second Request
		cached int
	}{
		{"nothing shared", Request{Keys: chain(1, 3), Prompt: 10, Output: 4}, Request{Keys: chain(2, 3), Prompt: 10, Output: 4}, 0},
		{"full blocks only", Request{Keys: chain(1, 2), Prompt: 10, Output: 1}, Request{Keys: chain(1, 2), Prompt: 10, Output: 1}, 8},
		{"a block multiple recomputes its last block", Request{Keys: base, Prompt: 12, Output: 1}, Request{Keys: base, Prompt: 12, Output: 1}, 8},
		{"one token more takes it", Request{Keys: base, Prompt: 12, Output: 1}, Request{Keys: base, Prompt: 13, Output: 1}, 12},
		{"shared prefix, then a fork", Request{Keys: base, Prompt: 20, Output: 1}, Request{Keys: fork(base, 3, 2, 5), Prompt: 20, Output: 1}, 12},
		// 10 prompt and 7 output tokens, the last of which has no KV: 16 tokens.
		{"generated tokens are cached", Request{Keys: base, Prompt: 10, Output: 7}, Request{Keys: base, Prompt: 20, Output: 1}, 16},
		{"the last generated token is not", Request{Keys: base, Prompt: 10, Output: 6}, Request{Keys: base, Prompt: 20, Output: 1}, 12},
		{"no keys, no hits", Request{Prompt: 12, Output: 1}, Request{Prompt: 12, Output: 1}, 0},
		{"a block with key 0 ends the hit", Request{Keys: []uint64{1, 0, 3}, Prompt: 16, Output: 1}, Request{Keys: []uint64{1, 0, 3}, Prompt: 16, Output: 1}, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			serve(t, New(tiny()), &tt.first, &tt.second)
			if tt.second.Cached != tt.cached {
				t.Errorf("cached = %d, want %d", tt.second.Cached, tt.cached)
			}
		})
	}
}

func TestTailOfAFinishedSequenceIsEvictedFirst(t *testing.T) {
	e := New(tiny()) // 8 blocks
	a, b := chain(1, 5), chain(2, 5)
	serve(t, e,
		&Request{Keys: a, Prompt: 20, Output: 1}, // 5 blocks
		&Request{Keys: b, Prompt: 20, Output: 1}) // 3 fresh blocks and 2 of a's tail
	again := &Request{Keys: a, Prompt: 21, Output: 1}
	serve(t, e, again)
	if again.Cached != 12 {
		t.Errorf("cached = %d, want the first 3 blocks", again.Cached)
	}
}

func TestAHitRenewsRecency(t *testing.T) {
	e := New(tiny())
	a, b := chain(1, 2), chain(2, 2)
	serve(t, e,
		&Request{Keys: a, Prompt: 9, Output: 1}, // 2 blocks and a part of one
		&Request{Keys: b, Prompt: 9, Output: 1},
		&Request{Keys: a, Prompt: 9, Output: 1},
		&Request{Keys: chain(3, 5), Prompt: 20, Output: 1}) // must evict
	againA, againB := &Request{Keys: a, Prompt: 9, Output: 1}, &Request{Keys: b, Prompt: 9, Output: 1}
	serve(t, e, againA, againB)
	if againA.Cached != 8 || againB.Cached == 8 {
		t.Errorf("cached = %d and %d, want 8 and less", againA.Cached, againB.Cached)
	}
}

func TestRunningSequencesShareBlocks(t *testing.T) {
	e := New(tiny())
	keys := chain(1, 4)
	first := &Request{Keys: keys, Prompt: 16, Output: 3}
	second := &Request{Keys: fork(keys, 3, 2, 4), Prompt: 16, Output: 3}
	if err := e.Submit(0, first); err != nil {
		t.Fatal(err)
	}
	e.Advance(e.NextStep())
	if err := e.Submit(e.clock, second); err != nil {
		t.Fatal(err)
	}
	e.Advance(e.NextStep())
	// 5 blocks for the first (17 tokens), 1 more for the second's last block and
	// its first output token's.
	if used := e.Stats().UsedTokens; used != 6*4 {
		t.Errorf("used = %d tokens, want 24", used)
	}
	if second.Cached != 12 {
		t.Errorf("cached = %d, want 12", second.Cached)
	}
	drain(t, e)
}

func TestClearCacheForgetsContentButNotRequests(t *testing.T) {
	e := New(tiny())
	keys := chain(1, 4)
	running := &Request{Keys: keys, Prompt: 10, Output: 6}
	if err := e.Submit(0, running); err != nil {
		t.Fatal(err)
	}
	e.Advance(e.NextStep())
	e.ClearCache(e.clock)
	drain(t, e)
	again := &Request{Keys: keys, Prompt: 10, Output: 1}
	serve(t, e, again)
	if running.Finished == 0 || again.Cached != 0 {
		t.Errorf("finished at %v, cached = %d, want finished and 0", running.Finished, again.Cached)
	}
}

func TestSlots(t *testing.T) {
	p := tiny()
	p.Slots, p.MaxSequences, p.Blocks = true, 2, 32 // 2 slots of 64 tokens
	a, b := chain(1, 16), chain(2, 16)
	tests := []struct {
		name    string
		before  []*Request
		request *Request
		cached  int
	}{
		{"whole prompt but its last token", []*Request{{Keys: a, Prompt: 16, Output: 1}}, &Request{Keys: a, Prompt: 16, Output: 1}, 15},
		{"the longest common prefix wins", []*Request{
			{Keys: a, Prompt: 16, Output: 1}, {Keys: b, Prompt: 16, Output: 1},
		}, &Request{Keys: a, Prompt: 24, Output: 1}, 16},
		{"a tenth in common is enough", []*Request{
			{Keys: a, Prompt: 16, Output: 1}, {Keys: b, Prompt: 16, Output: 1},
		}, &Request{Keys: fork(b, 1, 3, 16), Prompt: 36, Output: 1}, 4},
		{"less is not, so the oldest slot serves", []*Request{
			{Keys: a, Prompt: 16, Output: 1}, {Keys: b, Prompt: 16, Output: 1},
		}, &Request{Keys: fork(b, 1, 3, 16), Prompt: 60, Output: 1}, 0},
		{"slots share nothing", []*Request{
			{Keys: a, Prompt: 16, Output: 1}, {Keys: b, Prompt: 16, Output: 1}, {Keys: chain(3, 16), Prompt: 16, Output: 1},
		}, &Request{Keys: a, Prompt: 16, Output: 1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := New(p)
			serve(t, e, tt.before...)
			serve(t, e, tt.request)
			if tt.request.Cached != tt.cached {
				t.Errorf("cached = %d, want %d", tt.request.Cached, tt.cached)
			}
		})
	}
}
