package fleet

import (
	"math"
	"testing"
	"time"
)

// Load does not swing between replicas: what they have in flight differs less
// than under the rule that takes any, and who has more than usual now is not the
// one who has less a little later.
func TestRoutingDoesNotSwing(t *testing.T) {
	byVolume(t)
	// Tenants are left out: under some seeds this load is beyond saturation.
	workloads := []string{"no-reuse", "tool-heavy"}
	if *learning {
		workloads = append(workloads, "150-prefixes", "hotspot", "coding-agents", "sub-agents", "bursts")
	}
	for _, name := range workloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spread, turn figures
			for _, seed := range routingSeeds() {
				// Less than that shows mostly how caches fill for the first time.
				o := scenario(t, name, 0.8, seed, 5*time.Minute)
				own, random := swingOf(t, OwnPolicy, o), swingOf(t, "random", o)
				spread, turn = append(spread, own.spread/random.spread), append(turn, own.turn)
			}
			bar(t, name+": spread of requests in flight, random = 1", spread.geometric(), 0.8)
			bar(t, name+": turn of the load", turn.mean(), 0.25)
		})
	}
}

// swing is how the load moved between replicas.
type swing struct {
	// spread is the standard deviation over the replicas of the requests in
	// flight, over time.
	spread float64
	// turn is how firmly more than usual becomes less: the most negative
	// correlation between what replicas deviate from the mean now and up to a
	// quarter of a minute later, 1 when they change places.
	turn float64
}

const swingStep = 2 * time.Second

func swingOf(t *testing.T, policy string, o Options) swing {
	t.Helper()
	router, err := NewRouter(policy, o.Replicas, 1)
	if err != nil {
		t.Fatal(err)
	}
	return swingUnder(t, router, o)
}

func swingUnder(t *testing.T, router Router, o Options) swing {
	t.Helper()
	r := Record(router, len(o.Replicas), o.Until, int(o.Until/swingStep), nil)
	if _, err := Run(o, r); err != nil {
		t.Fatal(err)
	}
	inFlight := r.Series().InFlight
	for i := range inFlight {
		inFlight[i] = inFlight[i][o.Warmup/swingStep:]
	}
	deviations := deviationsOf(inFlight)
	s := swing{spread: math.Sqrt(correlation(deviations, 0))}
	for _, d := range deviations { // some always have more: that is no swing
		usual := figures(d).mean()
		for i := range d {
			d[i] -= usual
		}
	}
	for lag := 1; lag <= int(15*time.Second/swingStep); lag++ {
		s.turn = max(s.turn, -correlation(deviations, lag)/correlation(deviations, 0))
	}
	return s
}

// deviationsOf are the differences of the replicas from the mean of all, step by
// step.
func deviationsOf(series [][]float64) [][]float64 {
	deviations := make([][]float64, len(series))
	for step := range series[0] {
		mean := 0.0
		for i := range series {
			mean += series[i][step] / float64(len(series))
		}
		for i := range series {
			deviations[i] = append(deviations[i], series[i][step]-mean)
		}
	}
	return deviations
}

// correlation is the mean product of deviations that are so many steps apart.
func correlation(deviations [][]float64, lag int) float64 {
	sum, n := 0.0, 0
	for _, d := range deviations {
		for i := lag; i < len(d); i++ {
			sum += d[i] * d[i-lag]
			n++
		}
	}
	return sum / float64(n)
}

// The measure finds a rule that swings: one that goes by the load of some seconds ago.
func TestSwingIsFound(t *testing.T) {
	o := scenario(t, "no-reuse", 0.6, 1, time.Minute)
	steady := swingOf(t, "least-requests", o)
	stale := swingUnder(t, &staleLoad{Router: &alternate{}, now: make([]int, 8), seen: make([]int, 8)}, o)
	if stale.turn < 0.5 || stale.spread < 2*steady.spread {
		t.Errorf("a rule that swings: %+v, one that does not: %+v", stale, steady)
	}
}

// staleLoad takes the replica with fewest requests, as they were some seconds ago.
type staleLoad struct {
	Router
	now, seen []int
	since     time.Duration
}

func (s *staleLoad) Choose(now time.Duration, _ *Request, candidates []int) int {
	if now-s.since > 5*time.Second {
		copy(s.seen, s.now)
		s.since = now
	}
	best := candidates[0]
	for _, i := range candidates {
		if s.seen[i] < s.seen[best] {
			best = i
		}
	}
	s.now[best]++
	return best
}

func (s *staleLoad) End(_ time.Duration, r *Request) { s.now[r.Replica]-- }
