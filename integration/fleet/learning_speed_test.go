package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// uneven makes one replica three times slower than the others and one twice as
// fast.
func uneven(o *Options) {
	o.Replicas = append([]engine.Profile(nil), o.Replicas...)
	o.Replicas[2] = o.Replicas[2].Slowed(3)
	o.Replicas[5] = o.Replicas[5].Slowed(0.5)
}

const slowReplica = 2

// Replicas of unequal speed are found out.
func TestLearningSpeed(t *testing.T) {
	byVolume(t)
	workloads, loads := []string{"no-reuse", "zipf-small-caches"}, []float64{0.6}
	if *learning {
		workloads = append(workloads, "150-prefixes", "hotspot", "documents", "tool-heavy")
		loads = append(loads, 0.8)
	}
	for _, name := range workloads {
		for _, load := range loads {
			what := fmt.Sprintf("%s at %g", name, load)
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				learnSpeed(t, name, load, what)
			})
		}
	}
}

func learnSpeed(t *testing.T, name string, load float64, what string) {
	var cost, share, toldShare figures
	for _, seed := range learningSeeds() {
		o := scenario(t, name, load, seed, long(5*time.Minute, 3*time.Minute))
		uneven(&o)
		told := RouterVisible
		told.Speeds = true
		learned := record(t, o, seed)
		o.Knowledge = &told
		informed := record(t, o, seed)
		cost = append(cost, meanTTFT(learned, o.Warmup)/meanTTFT(informed, o.Warmup))
		share = append(share, slowShare(learned, len(o.Replicas)))
		toldShare = append(toldShare, slowShare(informed, len(o.Replicas)))
	}
	bar(t, what+": mean TTFT, told = 1", cost.geometric(), compared(1.10))
	// Near saturation a third is what it must do.
	bar(t, what+": work of the slow one after 50 requests, others' = 1", share.mean(), max(1.0/3, 1.1*toldShare.mean()))
}

// slowShare is how many tokens the slow replica computed of requests placed
// after its fiftieth, as a share of the mean of the ordinary ones.
func slowShare(samples []sample, replicas int) float64 {
	n, from := 0, time.Duration(0)
	for _, s := range samples {
		if s.replica == slowReplica {
			if n++; n == 50 {
				from = s.finished
				break
			}
		}
	}
	computed := make([]int, replicas)
	ordinary := 0
	for _, s := range samples {
		if s.placed >= from {
			computed[s.replica] += s.prompt - s.cached
		}
	}
	for i, tokens := range computed {
		if i != slowReplica && i != 5 {
			ordinary += tokens
		}
	}
	return float64(computed[slowReplica]) * float64(replicas-2) / float64(ordinary)
}
