package fleet

import (
	"slices"
	"time"
)

// Result is how a run went for the clients.
type Result struct {
	Requests int // counted: arrived after the warm-up
	All      int // ended
	Retried  int

	TTFT, EndToEnd []time.Duration // of the counted requests, sorted on demand
	PromptTokens   int
	CachedTokens   int
	// PromisedTokens are those that the router expected to be cached, and
	// MisjudgedTokens by how many it was wrong, either way.
	PromisedTokens, MisjudgedTokens int
	// Computed are the prompt tokens that each replica computed.
	Computed []int
	// Busy is how long each replica computed since its start, for whomever.
	Busy []time.Duration

	warmup time.Duration
	last   time.Duration
	sorted bool
}

func newResult(o Options) *Result {
	return &Result{warmup: o.Warmup, Computed: make([]int, len(o.Replicas))}
}

func (r *Result) add(q *Request) {
	r.All++
	r.last = max(r.last, q.sequence.Finished)
	if q.Arrived < r.warmup {
		return
	}
	r.Requests++
	r.TTFT = append(r.TTFT, q.sequence.FirstToken-q.Arrived)
	r.EndToEnd = append(r.EndToEnd, q.sequence.Finished-q.Arrived)
	r.PromptTokens += q.Prompt
	r.CachedTokens += q.Cached()
	r.PromisedTokens += q.Promised
	r.MisjudgedTokens += max(q.Promised-q.Cached(), q.Cached()-q.Promised)
	r.Computed[q.Replica] += q.Prompt - q.Cached()
}

// HitRate is the share of prompt tokens that were cached.
func (r *Result) HitRate() float64 {
	if r.PromptTokens == 0 {
		return 0
	}
	return float64(r.CachedTokens) / float64(r.PromptTokens)
}

// Imbalance is the largest number of prompt tokens that a replica computed,
// over the mean.
func (r *Result) Imbalance() float64 {
	sum := 0
	for _, n := range r.Computed {
		sum += n
	}
	if sum == 0 {
		return 1
	}
	return float64(slices.Max(r.Computed)) * float64(len(r.Computed)) / float64(sum)
}

// Ended is when the last request ended.
func (r *Result) Ended() time.Duration { return r.last }

// Mean of times, in seconds; 0 of none.
func Mean(times []time.Duration) float64 {
	if len(times) == 0 {
		return 0
	}
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum.Seconds() / float64(len(times))
}

// Quantile of the times to first token, in seconds.
func (r *Result) Quantile(q float64) float64 {
	if len(r.TTFT) == 0 {
		return 0
	}
	if !r.sorted {
		slices.Sort(r.TTFT)
		r.sorted = true
	}
	return r.TTFT[min(len(r.TTFT)-1, int(q*float64(len(r.TTFT))))].Seconds()
}
