package engine

import (
	"testing"
	"time"
)

func TestSleepLosesTheCacheAndPutsRequestsOff(t *testing.T) {
	keys := make([]uint64, 64)
	for i := range keys {
		keys[i] = uint64(i + 1)
	}
	e := New(H100x8B)
	first := &Request{Keys: keys, Prompt: 1000, Output: 1}
	running := &Request{Keys: keys, Prompt: 1000, Output: 20}
	asleep := &Request{Keys: keys, Prompt: 1000, Output: 1}
	submit := func(at time.Duration, r *Request) {
		if err := e.Submit(at, r); err != nil {
			t.Fatal(err)
		}
	}
	submit(0, first)
	submit(time.Second, running)
	e.Sleep(time.Second+50*time.Millisecond, 10*time.Second)
	if !e.Sleeping(9*time.Second) || e.Sleeping(10*time.Second) {
		t.Error("sleeps at other times than it was told")
	}
	submit(5*time.Second, asleep)
	e.Advance(time.Minute)
	if running.Cached != 992 || running.Finished < 10*time.Second {
		t.Errorf("running request found %d tokens and finished at %v, want 992 and after 10 s", running.Cached, running.Finished)
	}
	if asleep.FirstToken < 10*time.Second || asleep.Finished == 0 {
		t.Errorf("request during sleep got its first token at %v, want after 10 s", asleep.FirstToken)
	}
	if got := e.Stats().ComputedTokens; got < 2000 {
		t.Errorf("computed %d tokens, want the prompt again after sleep", got)
	}
}
