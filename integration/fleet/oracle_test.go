package fleet

import (
	"testing"
	"time"
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
