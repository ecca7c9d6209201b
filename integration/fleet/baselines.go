package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// Baselines are the rules that other routers publish, named by what they
// compute, with the defaults of their origin.
var baselines = []struct {
	name string
	rule rule
}{
	{"random", randomReplica},
	{"round-robin", roundRobin},
	{"least-requests", leastRequests},
	{"power-of-two", powerOfTwo},
	{"prefix-hash", prefixHash},
	{"two-choice-hash", twoChoiceHash},
	{"session", session},
	{"longest-prefix", longestPrefix},
	{"threshold-fleet", thresholdFleet},
	{"threshold-request", thresholdRequest},
	{"blend-3-2-2", blend},
	{"affinity-gate", affinityGate},
	{"prefill-decode-blocks", prefillDecodeBlocks},
	{"pending-uncached", pendingUncached},
	{"uncached-x-batch", uncachedTimesBatch},
	{"explore-exploit", exploreExploit},
}

// OwnPolicy is the name of cache_aware among the policies.
const OwnPolicy = "cache_aware"

// Policies are the names that NewRouter knows: cache_aware first.
func Policies() []string {
	names := []string{OwnPolicy}
	for _, b := range baselines {
		names = append(names, b.name)
	}
	return names
}

// Names are all that can be compared: policies, the oracle and the bounds.
func Names() []string { return slices.Concat(Policies(), []string{Oracle}, Bounds()) }

// NewRouter makes a router of a policy's name, or the oracle.
func NewRouter(policy string, profiles []engine.Profile, seed uint64) (Router, error) {
	switch policy {
	case OwnPolicy:
		return CacheAware(profiles, seed), nil
	case Oracle:
		return newOracle(profiles, seed), nil
	}
	for _, b := range baselines {
		if b.name == policy {
			return newBoard(b.rule, profiles, seed), nil
		}
	}
	return nil, fmt.Errorf("unknown policy %q, want one of %q", policy, Policies())
}

func randomReplica(b *board, _ time.Duration, _ *Request, candidates []int) int {
	return candidates[b.random.IntN(len(candidates))]
}

func roundRobin(b *board, _ time.Duration, _ *Request, candidates []int) int {
	b.turn++
	return candidates[b.turn%len(candidates)]
}

func leastRequests(b *board, _ time.Duration, _ *Request, candidates []int) int {
	return b.least(candidates, b.requests)
}

func powerOfTwo(b *board, _ time.Duration, _ *Request, candidates []int) int {
	if len(candidates) == 1 {
		return candidates[0]
	}
	first := b.random.IntN(len(candidates))
	second := (first + 1 + b.random.IntN(len(candidates)-1)) % len(candidates)
	return b.least([]int{candidates[first], candidates[second]}, b.requests)
}

// prefixHash is consistent hashing with bounded load over the first 256 tokens:
// the first replica on the ring with at most 1.25 times the mean load, the new
// request included (KubeAI, SMG).
func prefixHash(b *board, _ time.Duration, r *Request, candidates []int) int {
	mean, _, _ := b.spread(candidates)
	most := 1.25 * (mean + 1/float64(len(candidates)))
	return b.ring.walk(mix(head(r)), func(i int) bool {
		return slices.Contains(candidates, i) && b.requests(i) < most
	}, candidates[0])
}

// twoChoiceHash takes the less loaded of two replicas hashed from the first 256
// tokens.
func twoChoiceHash(b *board, _ time.Duration, r *Request, candidates []int) int {
	listed := func(i int) bool { return slices.Contains(candidates, i) }
	first := b.ring.walk(mix(head(r)), listed, candidates[0])
	second := b.ring.walk(mix(head(r)+1), func(i int) bool { return i != first && listed(i) }, first)
	return b.least([]int{first, second}, b.requests)
}

// session sends all requests of a session to the same replica.
func session(b *board, _ time.Duration, r *Request, candidates []int) int {
	return b.ring.walk(mix(r.client()), func(i int) bool { return slices.Contains(candidates, i) }, candidates[0])
}

// longestPrefix is the least loaded of those that hold most of the prompt.
func longestPrefix(b *board, _ time.Duration, _ *Request, candidates []int) int {
	holders, _ := b.longest(candidates)
	return b.least(holders, b.requests)
}

// thresholdFleet is SGLang's first form: least requests while the fleet is out of
// balance (64 and 1.5 times), else a holder of the longest prefix if that is more
// than 0.3 of the prompt, else the replica with the smallest tree.
func thresholdFleet(b *board, _ time.Duration, r *Request, candidates []int) int {
	_, low, high := b.spread(candidates)
	if high-low > 64 && high > 1.5*low {
		return b.least(candidates, b.requests)
	}
	if holders, tokens := b.longest(candidates); float64(tokens) > 0.3*float64(r.Estimated) {
		return holders[b.random.IntN(len(holders))]
	}
	return b.least(candidates, func(i int) float64 { return float64(b.residency.Held(slot(i))) })
}

// thresholdRequest is SMG's present form: the least loaded holder of the longest
// prefix if that is more than 0.3 of the prompt, unless it is loaded above 1.5
// times the mean and above the mean plus 64; else least requests.
func thresholdRequest(b *board, _ time.Duration, r *Request, candidates []int) int {
	mean, _, _ := b.spread(candidates)
	if holders, tokens := b.longest(candidates); float64(tokens) > 0.3*float64(r.Estimated) {
		i := b.least(holders, b.requests)
		if n := b.requests(i); n <= 1.5*mean || n <= mean+64 {
			return i
		}
	}
	return b.least(candidates, b.requests)
}

// blend is llm-d's default: 3 parts matched share, 2 parts free queue between
// least and most, 2 parts free KV.
func blend(b *board, _ time.Duration, r *Request, candidates []int) int {
	low, high := b.replicas[candidates[0]].queued, 0
	for _, i := range candidates {
		low, high = min(low, b.replicas[i].queued), max(high, b.replicas[i].queued)
	}
	return b.least(candidates, func(i int) float64 {
		t := &b.replicas[i]
		queue := 1.0
		if high > low {
			queue = float64(high-t.queued) / float64(high-low)
		}
		kv := 1 - min(1, float64(t.context)/float64(t.capacity))
		return -(3*float64(b.matched(i))/float64(r.Estimated) + 2*queue + 2*kv)
	})
}

// affinityGate is llm-d's filter: only holders of 0.8 of the prompt, unless they
// have 18 s of prefill (at 15928 tokens/s) more to do than the others; then the
// least work.
func affinityGate(b *board, now time.Duration, r *Request, candidates []int) int {
	holders := b.filter(candidates, func(i int) bool { return float64(b.matched(i)) >= 0.8*float64(r.Estimated) })
	if len(holders) == 0 {
		return pendingUncached(b, now, r, candidates)
	}
	best := pendingUncached(b, now, r, holders)
	other := pendingUncached(b, now, r, candidates)
	if b.replicas[best].pending-b.replicas[other].pending > 18*15928 {
		return other
	}
	return best
}

// prefillDecodeBlocks is Dynamo's cost: blocks to prefill, the request's own
// included, and blocks in use by decoding.
func prefillDecodeBlocks(b *board, _ time.Duration, r *Request, candidates []int) int {
	return b.least(candidates, func(i int) float64 {
		t := &b.replicas[i]
		return float64(t.pending+b.uncached(r, i)+t.context+r.Estimated) / 16
	})
}

// pendingUncached is the least prefill work, the request's own included.
func pendingUncached(b *board, _ time.Duration, r *Request, candidates []int) int {
	return b.least(candidates, func(i int) float64 {
		return float64(b.replicas[i].pending + b.uncached(r, i))
	})
}

// uncachedTimesBatch is LMetric: prefill work, the request's own included, times
// the batch that it would join.
func uncachedTimesBatch(b *board, _ time.Duration, r *Request, candidates []int) int {
	return b.least(candidates, func(i int) float64 {
		t := &b.replicas[i]
		return float64(t.pending+b.uncached(r, i)) * float64(t.inFlight()+1)
	})
}

// exploreExploit is Preble's E2: if more than half of the prompt is held
// somewhere, the cheapest of the longest holders, else the cheapest of all. The
// cost is the work sent in the last three minutes, the request's own prefill,
// and the prefill of what it evicts.
func exploreExploit(b *board, now time.Duration, r *Request, candidates []int) int {
	holders, tokens := b.longest(candidates)
	if 2*tokens <= r.Estimated {
		holders = candidates
	}
	return b.least(holders, func(i int) float64 {
		uncached := b.uncached(r, i)
		evicted := max(0, b.residency.Held(slot(i))+uncached-b.replicas[i].capacity)
		return b.replicas[i].window.sum(now) + e2Seconds(r, uncached) + e2PerToken*float64(min(evicted, uncached))
	})
}
