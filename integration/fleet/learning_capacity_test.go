package fleet

import (
	"fmt"
	"testing"
	"time"
)

// settled is when every replica has computed so many times its capacity.
func settled(t *testing.T, samples []sample, o Options, times int) time.Duration {
	t.Helper()
	inserted := make([]int, len(o.Replicas))
	left := len(inserted)
	for _, s := range samples {
		n := times * o.Replicas[s.replica].Capacity()
		before := inserted[s.replica]
		inserted[s.replica] += s.prompt - s.cached
		if before < n && inserted[s.replica] >= n {
			if left--; left == 0 {
				return s.finished
			}
		}
	}
	t.Fatalf("%d replicas have not computed %d times their capacity: %v", left, times, inserted)
	return 0
}

// misjudged is by how many tokens promises were wrong, either way, as a share of
// the prompts' tokens.
func misjudged(samples []sample, from time.Duration) float64 {
	wrong, all := 0, 0
	for _, s := range samples {
		if s.arrived >= from {
			wrong += max(s.promise-s.cached, s.cached-s.promise)
			all += s.prompt
		}
	}
	return float64(wrong) / float64(all)
}

// A capacity that is wrong by a factor of four is found out.
func TestLearningCapacity(t *testing.T) {
	byVolume(t)
	workloads := map[string]time.Duration{"zipf-small-caches": long(10*time.Minute, 3*time.Minute)}
	if *learning {
		workloads["150-prefixes"] = 25 * time.Minute
	}
	for name, duration := range workloads {
		for _, told := range []struct {
			by    string
			usage bool
		}{{"usage", true}, {"counters only", false}} {
			for _, factor := range []float64{4, 0.25} {
				what := fmt.Sprintf("%s, configured %g x the truth, %s", name, factor, told.by)
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					learnCapacity(t, name, duration, factor, told.usage, what)
				})
			}
		}
	}
}

func learnCapacity(t *testing.T, name string, duration time.Duration, factor float64, usage bool, what string) {
	var wrong, cost figures
	for _, seed := range learningSeeds() {
		o := scenario(t, name, 0.8, seed, duration)
		knowing := RouterVisible
		knowing.Usage, knowing.Capacity = usage, factor
		o.Knowledge = &knowing
		learned := record(t, o, seed)
		truth := knowing
		truth.Capacity = 1
		o.Knowledge = &truth
		told := record(t, o, seed)
		from := max(settled(t, learned, o, 3), settled(t, told, o, 3))
		wrong = append(wrong, misjudged(learned, from))
		cost = append(cost, meanTTFT(learned, from)/meanTTFT(told, from))
	}
	bar(t, what+": hits misjudged", wrong.mean(), 0.10)
	bar(t, what+": mean TTFT, told = 1", cost.geometric(), compared(1.10))
}
