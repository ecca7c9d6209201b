package fleet

import (
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// The oracle knows what a router cannot: what others have sent to a replica, and
// what that pushed out of its cache.
func TestOracleKnowsWhatIsHidden(t *testing.T) {
	byVolume(t)
	o := scenario(t, "documents", 0.7, 1, 2*time.Minute)
	o.Foreign = 0.5
	o.Knowledge = &Knowledge{Usage: true}
	own, oracle := runOn(t, OwnPolicy, o), runOn(t, Oracle, o)
	misjudged := func(r *Result) float64 { return float64(r.MisjudgedTokens) / float64(r.PromptTokens) }
	bar(t, "hits misjudged by the oracle, share of the prompts", misjudged(oracle), 0.01)
	bar(t, "hits misjudged by the oracle, cache_aware = 1", misjudged(oracle)/misjudged(own), 0.5)
	bar(t, "mean TTFT of the oracle, cache_aware = 1", Mean(oracle.TTFT)/Mean(own.TTFT), 0.9)
	again := runOn(t, Oracle, o)
	if Mean(again.TTFT) != Mean(oracle.TTFT) {
		t.Error("the same seed ran differently")
	}
}

// What a replica computes before a request counts as held by then.
func TestOracleCountsWhatIsUnderway(t *testing.T) {
	profile := engine.H100x8B
	request := func(replica int, keys ...uint64) *Request {
		r := &Request{Replica: replica, Prompt: len(keys) * profile.BlockSize, Estimated: len(keys) * profile.BlockSize}
		r.sequence.Keys = keys
		return r
	}
	done := request(1, 1, 2, 4)
	done.sequence.FirstToken = time.Second
	f := &run{
		options: Options{Replicas: []engine.Profile{profile, profile}},
		engines: []*engine.Engine{engine.New(profile), engine.New(profile)},
		flying:  map[uint64]*Request{1: request(1, 1, 2, 3), 2: request(1, 1), 3: done},
	}
	for replica, want := range []int{0, 2 * profile.BlockSize} {
		if got := f.truth(replica, request(0, 1, 2, 4)).Matched; got != want {
			t.Errorf("replica %d holds %d tokens, want %d", replica, got, want)
		}
	}
	if got, want := f.truth(1, request(0, 1, 2, 3)).Matched, 3*profile.BlockSize-1; got != want {
		t.Errorf("%d of the same prompt, want all but the last token, %d", got, want)
	}
}

// The oracle stands beside the policies, and is compared with cache_aware only.
func TestOracleIsNoPolicy(t *testing.T) {
	rows := append([]Row{rowOf(Oracle, "w", 1, 0.1, 0.1, 0.1), rowOf(Oracle, "v", 1, 0.1, 0.1, 0.1)}, twoCells...)
	if list := Summarize(rows); len(list) != 2 || !near(list[0].TTFT.Mean, Summarize(twoCells)[0].TTFT.Mean) {
		t.Errorf("compared with the best: %+v", list)
	}
	if own := Versus(rows); !near(own.TTFT.Mean, 1) {
		t.Errorf("cache_aware to the best other: %+v", own)
	}
	if list := AgainstOwn(rows); list[0].Policy != Oracle || !near(list[0].TTFT.Worst, 0.05) {
		t.Errorf("compared with cache_aware: %+v", list)
	}
}
