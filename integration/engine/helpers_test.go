package engine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// tiny is a profile small enough to work through by hand: blocks of 4 tokens,
// 8 blocks, 16 tokens a step.
func tiny() Profile {
	return Profile{
		Name: "tiny", BlockSize: 4, Blocks: 8, TokenBudget: 16, MaxSequences: 4,
		StepFloor: 6 * time.Millisecond, StepBase: 4 * time.Millisecond,
		PerPrefillToken: time.Millisecond, PerAttention: 10,
		PerSequence: 100 * time.Microsecond, PerKVToken: 1000,
	}
}

// chain makes n chained keys; different texts share none.
func chain(text uint64, n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = text<<32 | uint64(i+1)
	}
	return keys
}

// fork is the first n of keys, followed by up to total keys of another text.
func fork(keys []uint64, n int, text uint64, total int) []uint64 {
	return append(append([]uint64(nil), keys[:n]...), chain(text, total)[n:]...)
}

// drain runs an engine until nothing is left to do.
func drain(t *testing.T, e *Engine) []Event {
	t.Helper()
	var all []Event
	for range 1_000_000 {
		next := e.NextEvent()
		if next == Never {
			checkIdle(t, e)
			return all
		}
		all = append(all, e.Advance(next)...)
	}
	t.Fatal("the engine never comes to rest")
	return nil
}

func checkIdle(t *testing.T, e *Engine) {
	t.Helper()
	if s := e.Stats(); s.Running != 0 || s.Waiting != 0 || s.UsedTokens != 0 {
		t.Errorf("idle engine holds %d running, %d waiting, %d tokens", s.Running, s.Waiting, s.UsedTokens)
	}
}

// serve runs requests one after the other.
func serve(t *testing.T, e *Engine, requests ...*Request) {
	t.Helper()
	now := e.clock
	for _, r := range requests {
		now += time.Second
		if err := e.Submit(now, r); err != nil {
			t.Fatal(err)
		}
		drain(t, e)
		now = e.clock
	}
}

// arrival is a request with the time at which it is submitted, and the time
// after that at which its client leaves, if it does.
type arrival struct {
	at, leaves time.Duration
	request    Request
}

// traffic draws arrivals whose prompts share prefixes.
func traffic(rng *rand.Rand, p Profile, n int) []arrival {
	var texts [][]uint64
	var now time.Duration
	all := make([]arrival, n)
	most := p.MaxTokens()
	for i := range all {
		now += time.Duration(rng.ExpFloat64() * float64(50*time.Millisecond))
		prompt := 1 + rng.IntN(most*3/4)
		output := 1 + rng.IntN(most-prompt)
		blocks := (prompt + output) / p.BlockSize
		keys := chain(uint64(i+1), blocks)
		if len(texts) > 0 && rng.IntN(4) > 0 {
			from := texts[rng.IntN(len(texts))]
			keys = fork(from, rng.IntN(min(len(from), blocks)+1), uint64(i+1), blocks)
		}
		texts = append(texts, keys)
		all[i] = arrival{at: now, request: Request{Keys: keys, Prompt: prompt, Output: output, Tag: uint64(i)}}
		if rng.IntN(8) == 0 {
			all[i].leaves = now + time.Duration(rng.IntN(int(200*time.Millisecond)))
		}
	}
	return all
}
