package fleet

import (
	"container/list"
	"math"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// No policy is faster or has more hits than the bounds say.
func TestNoPolicyBeatsTheBounds(t *testing.T) {
	small := engine.H100x8B
	small.Blocks /= 20
	for name, w := range map[string]*workload.Workload{
		"open": workload.Prompts{
			Rate: 12, Duration: 40 * time.Second, Prefixes: 30, PrefixTokens: 3000, Skew: 1, OwnTokens: 300, AnswerTokens: 50,
		}.Workload(1),
		"closed, with sub-agents": subagents(6),
	} {
		policies := append([]string{"round-robin", "longest-prefix", "pending-uncached", OwnPolicy}, Bounds()...)
		outcomes, err := Comparison{
			Options:  Options{Workload: w, Replicas: replicas(3, small), Until: time.Hour},
			Policies: policies, Seed: 1, Steps: 10,
		}.Run()
		if err != nil {
			t.Fatal(err)
		}
		pooled, infinite := outcomes[4], outcomes[5]
		t.Logf("%s: pooled %+v, infinite %+v", name, pooled.Row, infinite.Row)
		if pooled.HitRate > infinite.HitRate || pooled.TTFTMean < infinite.TTFTMean || pooled.Imbalance != 1 {
			t.Errorf("%s: a cache without end does worse than %+v", name, pooled.Row)
		}
		for _, o := range outcomes[:4] {
			t.Logf("%s: %+v", name, o.Row)
			if o.Requests != infinite.Requests || o.HitRate > infinite.HitRate ||
				o.TTFTMean < infinite.TTFTMean || o.TTFTP99 < infinite.TTFTP99 || o.E2EMean < infinite.E2EMean {
				t.Errorf("%s: %s beats the bound of %+v", name, o.Policy, infinite.Row)
			}
			if o.HitRate > pooled.HitRate {
				t.Errorf("%s: %s has more hits than %v", name, o.Policy, pooled.HitRate)
			}
		}
		prompt := 0
		for _, n := range infinite.Series.PromptTokens {
			prompt += n
		}
		if prompt != infinite.Result.PromptTokens {
			t.Errorf("%s: %d prompt tokens over time, %d in all", name, prompt, infinite.Result.PromptTokens)
		}
	}
}

// On an idle replica with room for all, the bound is what happens.
func TestTheBoundIsReachedAlone(t *testing.T) {
	w := workload.Agents{
		Users: 1, Sessions: 3, Kinds: 1, ToolCount: 5, ToolTokens: 60, SystemTokens: 500,
		MinTurns: 4, MaxTurns: 8, AddedTokens: 900, AnswerTokens: 100, Think: time.Second,
	}.Workload(1)
	o := Options{Workload: w, Replicas: replicas(1, engine.H100x8B), Until: time.Hour}
	outcomes, err := Comparison{Options: o, Policies: []string{"random", InfiniteCache, PooledLRU}, Seed: 1, Steps: 1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	real := outcomes[0]
	for _, bound := range outcomes[1:] {
		if math.Abs(real.TTFTMean/bound.TTFTMean-1) > 1e-9 || math.Abs(real.E2EMean/bound.E2EMean-1) > 1e-9 || real.HitRate != bound.HitRate {
			t.Errorf("alone %+v, %s %+v", real.Row, bound.Policy, bound.Row)
		}
	}
}

func TestPoolForgetsWhatWasUsedLongestAgo(t *testing.T) {
	p := pool{held: map[uint64]*list.Element{}, most: 4}
	for _, c := range []struct {
		keys []uint64
		hits int
	}{
		{[]uint64{1, 2, 3}, 0},
		{[]uint64{1, 2, 9}, 2}, // 3 is the oldest now
		{[]uint64{7}, 0},       // which pushes it out
		{[]uint64{1, 2, 3}, 2}, // and this pushes out 9, the tail before its prefix
		{[]uint64{1, 2, 9}, 2},
	} {
		if hits := p.take(c.keys); hits != c.hits {
			t.Errorf("%v: %d hits, want %d", c.keys, hits, c.hits)
		}
	}
	if p.order.Len() != 4 || len(p.held) != 4 {
		t.Errorf("%d blocks in order, %d held, want 4", p.order.Len(), len(p.held))
	}
}
