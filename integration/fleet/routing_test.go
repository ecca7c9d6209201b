package fleet

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// What any routing rule must hold, in virtual time:
//
//	go test ./integration/fleet -run TestRouting -v -learning -timeout 30m
//
// prints every figure beside its bar, over more seeds and workloads than without
// -learning.

// within holds a figure between two limits.
func within(t *testing.T, what string, figure, least, most float64) {
	t.Helper()
	verdict := "ok"
	if !(figure >= least && figure <= most) {
		verdict = "MISSED"
		t.Fail()
	}
	t.Logf("%-64s %8.3f  (%.3f to %.3f) %s", what, figure, least, most, verdict)
}

// routingSeeds are those of the study.
func routingSeeds() []uint64 {
	if *learning {
		return []uint64{6, 7, 8, 9, 10}
	}
	return []uint64{6}
}

// Where nothing is shared there is nothing to be aware of: first tokens come as
// soon as under the rule that takes the least pending work.
func TestRoutingWithoutReuse(t *testing.T) {
	byVolume(t)
	loads := []float64{0.8}
	if *learning {
		loads = []float64{0.3, 0.8, 1.05}
	}
	for _, load := range loads {
		var ratio figures
		for _, seed := range routingSeeds() {
			o := scenario(t, "no-reuse", load, seed, long(10*time.Minute, 3*time.Minute))
			own, least := runOwn(t, o, seed), runOn(t, "pending-uncached", o)
			ratio = append(ratio, Mean(own.TTFT)/Mean(least.TTFT))
		}
		bar(t, fmt.Sprintf("no reuse at %g: mean TTFT, least pending work = 1", load), ratio.geometric(), 1.02)
	}
}

// In an idle fleet first tokens come as soon as from one replica that has nothing
// else to do and the cache of all.
func TestRoutingIdle(t *testing.T) {
	byVolume(t)
	// In these nothing is evicted at this load, all replicas are alike, and requests
	// of one prefix do not come all at once.
	workloads := []string{"150-prefixes", "documents", "tool-heavy"}
	if *learning {
		workloads = append(workloads, "no-reuse", "hotspot", "coding-agents", "bursts", "tenants", "diurnal", "jump")
	}
	for _, name := range workloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ratio figures
			for _, seed := range routingSeeds() {
				o := scenario(t, name, idle, seed, 30*time.Minute)
				own, bound := runOwn(t, o, seed), runBound(PooledLRU, o, nil, nil)
				ratio = append(ratio, Mean(own.TTFT)/Mean(bound.TTFT))
			}
			bar(t, name+" in an idle fleet: mean TTFT, bound = 1", ratio.geometric(), 1.02)
		})
	}
}

// idle is a load at which hardly a request meets another one.
const idle = 0.002

// The index that Caddy runs on decides like the plain one.
func TestRoutingOnBothIndexes(t *testing.T) {
	byVolume(t)
	workloads := []string{"150-prefixes", "zipf-small-caches", "coding-agents"}
	for _, name := range workloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ttft, hits figures
			for _, seed := range routingSeeds() {
				o := scenario(t, name, 0.6, seed, long(10*time.Minute, 90*time.Second))
				plain, other := runOwn(t, o, seed), runOnRistretto(t, o, seed)
				ttft = append(ttft, Mean(other.TTFT)/Mean(plain.TTFT))
				hits = append(hits, other.HitRate()-plain.HitRate())
			}
			within(t, name+" on ristretto: mean TTFT, plain map = 1", ttft.geometric(), 0.97, 1.03)
			bar(t, name+" on ristretto: difference in hit rate", math.Abs(hits.mean()), 0.01)
		})
	}
}

func runOnRistretto(t *testing.T, o Options, seed uint64) *Result {
	t.Helper()
	store, err := selection.NewRistrettoStore(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	f := selection.NewFleet(store, seed)
	defer f.Close()
	result, err := Run(o, NewCacheAware(f, o.Replicas))
	if err != nil {
		t.Fatal(err)
	}
	return result
}
