package load

import (
	"math"
	"slices"
	"time"
)

// Summary is what a run comes to. Times are in seconds, over the requests that
// were answered.
type Summary struct {
	Policy   string  `json:"policy"`
	Requests int     `json:"requests"`
	Errors   int     `json:"errors"`
	TTFTMean float64 `json:"ttft_mean_s"`
	TTFTP50  float64 `json:"ttft_p50_s"`
	TTFTP90  float64 `json:"ttft_p90_s"`
	TTFTP99  float64 `json:"ttft_p99_s"`
	E2EMean  float64 `json:"e2e_mean_s"`
	// HitRate is the share of prompt tokens that were cached.
	HitRate float64 `json:"hit_rate"`
	// ReplicaShare is the share of requests that each replica answered.
	ReplicaShare []float64 `json:"replica_share"`
}

// Summarize sums up the results of a run under a policy over the replicas with
// those names.
func Summarize(policy string, replicas []string, results []Result) Summary {
	s := Summary{Policy: policy, Requests: len(results), ReplicaShare: make([]float64, len(replicas))}
	var ttft []time.Duration
	var total time.Duration
	var prompt, cached int
	for _, r := range results {
		if r.Err != nil {
			s.Errors++
			continue
		}
		ttft = append(ttft, r.TTFT)
		total += r.Total
		prompt += r.PromptTokens
		cached += r.CachedTokens
		if i := slices.Index(replicas, r.Replica); i >= 0 {
			s.ReplicaShare[i]++
		}
	}
	if len(ttft) == 0 {
		return s
	}
	n := float64(len(ttft))
	slices.Sort(ttft)
	s.TTFTMean = mean(ttft).Seconds()
	s.TTFTP50 = quantile(ttft, 0.50).Seconds()
	s.TTFTP90 = quantile(ttft, 0.90).Seconds()
	s.TTFTP99 = quantile(ttft, 0.99).Seconds()
	s.E2EMean = total.Seconds() / n
	s.HitRate = float64(cached) / float64(max(1, prompt))
	for i := range s.ReplicaShare {
		s.ReplicaShare[i] /= n
	}
	return s
}

func mean(values []time.Duration) (sum time.Duration) {
	for _, v := range values {
		sum += v
	}
	return sum / time.Duration(len(values))
}

// quantile is the smallest of the sorted values that at least a share q of them
// does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
