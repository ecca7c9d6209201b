package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Half of the traffic reaches the replicas past the router. What there is to
// gain depends on how unevenly the foreign work comes: where requests are alike,
// a rule that sees all queues as they are at any moment gains 10 % at most.
func TestLearningForeignTraffic(t *testing.T) {
	byVolume(t)
	cells := []struct {
		workload string
		load     float64
		most     float64
	}{
		{"documents", 0.7, 1 / 1.15},
		{"documents", 0.6, 0.95},
		{"150-prefixes", 0.6, 1},
		{"no-reuse", 0.8, 1.03},
		{"zipf-small-caches", 0.6, 1.03},
		{"tool-heavy", 0.6, 1.05},
	}
	if !*learning {
		cells = cells[:1]
	}
	for _, c := range cells {
		what := fmt.Sprintf("%s at %g", c.workload, c.load)
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			learnForeign(t, c.workload, c.load, what, c.most)
		})
	}
}

func learnForeign(t *testing.T, name string, load float64, what string, most float64) {
	var gain, spread figures
	for _, seed := range learningSeeds() {
		o := scenario(t, name, load, seed, 10*time.Minute)
		o.Foreign = 0.5
		blind := RouterVisible
		blind.Metrics = 0
		seeing := runOwn(t, o, seed)
		o.Knowledge = &blind
		gain = append(gain, Mean(seeing.TTFT)/Mean(runOwn(t, o, seed).TTFT))
		spread = append(spread, busiest(seeing))
	}
	bar(t, what+": mean TTFT with metrics, without = 1", gain.geometric(), compared(most))
	bar(t, what+": busy time of the busiest replica, mean = 1", spread.mean(), 1.20)
}

func runOwn(t *testing.T, o Options, seed uint64) *Result {
	t.Helper()
	router, err := NewRouter(OwnPolicy, o.Replicas, seed)
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(o, router)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// busiest is the longest busy time of a replica, over the mean.
func busiest(r *Result) float64 {
	sum := time.Duration(0)
	for _, busy := range r.Busy {
		sum += busy
	}
	return float64(slices.Max(r.Busy)) * float64(len(r.Busy)) / float64(sum)
}
