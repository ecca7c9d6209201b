package health

import "math"

// trtllm reads TensorRT-LLM's Prometheus page, which exists with
// return_perf_metrics (tensorrt_llm/metrics/collector.py). Its /metrics is
// JSON that every reading drains, taking it from whoever else reads it, so it
// is never asked for on purpose.
var trtllm = dialect{
	engine: "trtllm",
	owner:  "tensorrt_llm",
	load:   []page{{"/prometheus/metrics", readTensorRT}},
}

func readTensorRT(body []byte, r *Report) bool {
	nan := math.NaN()
	var usage mean
	cached, reused, missed, blocks := nan, nan, nan, nan
	for s := range samples(body) {
		switch string(s.name) {
		case "trtllm_num_requests_running":
			add(&r.Running, s)
		case "trtllm_num_requests_waiting":
			add(&r.Waiting, s)
		case "trtllm_kv_cache_utilization":
			usage.add(s)
		case "trtllm_kv_cache_max_blocks":
			add(&blocks, s)
		case "trtllm_kv_cache_tokens_per_block":
			set(&r.BlockTokens, s)
		case "trtllm_kv_cache_reused_blocks_total":
			add(&reused, s)
		case "trtllm_kv_cache_missed_blocks_total":
			add(&missed, s)
		case "trtllm_prompt_tokens_total":
			add(&r.PromptTokens, s)
		case "trtllm_prompt_cached_tokens_total":
			add(&cached, s)
		case "trtllm_request_prefill_time_seconds_sum":
			add(&r.PrefillSeconds, s)
		case processStart:
			set(&r.StartTime, s)
		}
	}
	r.KVUsage = usage.share()
	r.CapacityTokens = blocks * r.BlockTokens
	r.ComputedTokens = difference(r.PromptTokens, cached)
	// Tokens are exact; blocks stand in for them where they are not told.
	r.PrefixQueries, r.PrefixHits = r.PromptTokens, cached
	if !Known(cached) {
		r.PrefixQueries, r.PrefixHits = (reused+missed)*r.BlockTokens, reused*r.BlockTokens
	}
	if r.PrefixHits > 0 {
		r.PrefixCaching = On
	}
	return r.tells()
}
