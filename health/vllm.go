package health

import "math"

// metricsPath is where most engines serve Prometheus's text format.
const metricsPath = "/metrics"

// processStart is written by Prometheus client libraries, unless they collect
// from several processes.
const processStart = "process_start_time_seconds"

// vllm reads vLLM's metrics by their names since 0.9 and by the older ones
// (vllm/v1/metrics/loggers.py). Data-parallel ranks differ in label engine.
var vllm = dialect{
	engine: "vllm",
	owner:  "vllm",
	load:   []page{{metricsPath, readVLLM}},
	facts:  []page{modelsPage},
}

// vllmNames collects what a page tells under more than one name.
type vllmNames struct {
	usage, oldUsage                    mean
	oldQueries, oldHits                float64
	bySource, cached, externallyCached float64
}

func readVLLM(body []byte, r *Report) bool {
	nan := math.NaN()
	n := vllmNames{oldQueries: nan, oldHits: nan, bySource: nan, cached: nan, externallyCached: nan}
	for s := range samples(body) {
		n.take(s, r)
	}
	n.settle(r)
	return r.tells()
}

func (n *vllmNames) take(s sample, r *Report) {
	switch string(s.name) {
	case "vllm:num_requests_running":
		add(&r.Running, s)
	case "vllm:num_requests_waiting":
		add(&r.Waiting, s)
	case "vllm:kv_cache_usage_perc":
		n.usage.add(s)
	case "vllm:gpu_cache_usage_perc":
		n.oldUsage.add(s)
	case "vllm:prefix_cache_queries_total":
		add(&r.PrefixQueries, s)
	case "vllm:prefix_cache_hits_total":
		add(&r.PrefixHits, s)
	case "vllm:gpu_prefix_cache_queries_total":
		add(&n.oldQueries, s)
	case "vllm:gpu_prefix_cache_hits_total":
		add(&n.oldHits, s)
	case "vllm:external_prefix_cache_hits_total":
		add(&n.externallyCached, s)
	case "vllm:prompt_tokens_total":
		add(&r.PromptTokens, s)
	case "vllm:prompt_tokens_cached_total":
		add(&n.cached, s)
	case "vllm:prompt_tokens_by_source_total":
		if string(s.label("source")) == "local_compute" {
			add(&n.bySource, s)
		}
	case "vllm:request_prefill_time_seconds_sum":
		add(&r.PrefillSeconds, s)
	case "vllm:request_prefill_kv_computed_tokens_sum":
		add(&r.ComputedTokens, s)
	case "vllm:engine_sleep_state":
		if v, ok := s.value(); ok && v > 0 && string(s.label("sleep_state")) != "awake" {
			r.Sleeping = true
		}
	case "vllm:cache_config_info":
		readCacheConfig(s, r)
	case processStart:
		set(&r.StartTime, s)
	}
}

// settle decides between names: some versions have both the old and the new
// ones, and none has all.
func (n *vllmNames) settle(r *Report) {
	r.KVUsage = first(n.usage.share(), n.oldUsage.share())
	r.PrefixQueries = first(r.PrefixQueries, n.oldQueries)
	r.PrefixHits = first(r.PrefixHits, n.oldHits)
	hits := r.PrefixHits
	if Known(n.externallyCached) {
		hits += n.externallyCached
	}
	r.ComputedTokens = first(r.ComputedTokens, n.bySource,
		difference(r.PromptTokens, n.cached), difference(r.PromptTokens, hits))
}

// readCacheConfig reads the labels of cache_config_info, one sample per rank.
// The number of tokens, where told, is also right for hybrid models, whose
// blocks are not all of one size.
func readCacheConfig(s sample, r *Report) {
	block := s.labelNumber("block_size")
	r.BlockTokens = first(block, r.BlockTokens)
	capacity := first(s.labelNumber("kv_cache_size_tokens"), s.labelNumber("num_gpu_blocks")*block)
	if capacity > 0 {
		addNumber(&r.CapacityTokens, capacity)
	}
	switch string(s.label("enable_prefix_caching")) {
	case "True":
		r.PrefixCaching = On
	case "False":
		r.PrefixCaching = Off
	}
}
