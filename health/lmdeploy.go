package health

import "math"

// lmdeploy reads LMDeploy (lmdeploy/metrics/loggers.py); data-parallel ranks
// differ in label engine.
var lmdeploy = dialect{
	engine: "lmdeploy",
	owner:  "lmdeploy",
	load:   []page{{metricsPath, readLMDeploy}},
	facts:  []page{{"/is_sleeping", readLMDeploySleep}},
}

func readLMDeploy(body []byte, r *Report) bool {
	var usage mean
	cached, hitRate := math.NaN(), math.NaN()
	for s := range samples(body) {
		switch string(s.name) {
		case "lmdeploy:num_requests_running":
			add(&r.Running, s)
		case "lmdeploy:num_requests_waiting", "lmdeploy:num_api_requests_waiting":
			add(&r.Waiting, s)
		case "lmdeploy:gpu_cache_usage_perc":
			usage.add(s)
		case "lmdeploy:prompt_tokens_total":
			add(&r.PromptTokens, s)
		case "lmdeploy:cached_tokens_total":
			add(&cached, s)
		case "lmdeploy:prefix_cache_hit_rate":
			add(&hitRate, s)
		case "lmdeploy:request_prefill_time_seconds_sum":
			add(&r.PrefillSeconds, s)
		case processStart:
			set(&r.StartTime, s)
		}
	}
	r.KVUsage = usage.share()
	r.PrefixQueries, r.PrefixHits = r.PromptTokens, cached
	r.ComputedTokens = difference(r.PromptTokens, cached)
	if !r.tells() {
		return false
	}
	// Prefix caching is off unless asked for, and no page tells. The first hit
	// does.
	r.PrefixCaching = Off
	if cached > 0 || hitRate > 0 {
		r.PrefixCaching = On
	}
	return true
}

func readLMDeploySleep(body []byte, r *Report) bool {
	var state struct {
		Sleeping *bool `json:"is_sleeping"`
	}
	if !decode(body, &state) || state.Sleeping == nil {
		return false
	}
	r.Sleeping = *state.Sleeping
	return true
}
