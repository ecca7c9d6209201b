package health

import "math"

// sglang reads SGLang's metrics, which exist only with --enable-metrics
// (python/sglang/srt/observability/metrics_collector.py), and else its JSON
// load pages, of which /get_load is the older.
var sglang = dialect{
	engine: "sglang",
	owner:  "sglang",
	load: []page{
		{metricsPath, readSGLang},
		{sglangLoadsPath, readSGLangLoads},
		{"/get_load", readSGLangGetLoad},
	},
	facts: []page{{sglangLoadsPath, readSGLangLimits}, modelsPage},
}

const sglangLoadsPath = "/v1/loads?include=core"

// sglangScheduler collects what each data-parallel rank's scheduler tells.
type sglangScheduler struct {
	running, waiting, usage, capacity ranks
	computed, prefill                 ranks
	cached                            float64
}

func readSGLang(body []byte, r *Report) bool {
	n := sglangScheduler{cached: math.NaN()}
	for s := range samples(body) {
		n.take(s, r)
	}
	n.settle(r)
	return r.tells()
}

func (n *sglangScheduler) take(s sample, r *Report) {
	const rank = "dp_rank"
	switch string(s.name) {
	case "sglang:num_running_reqs":
		if isTotal(s) {
			n.running.add(s, rank)
		}
	case "sglang:num_queue_reqs":
		if isTotal(s) {
			n.waiting.add(s, rank)
		}
	case "sglang:token_usage":
		n.usage.add(s, rank)
	case "sglang:max_total_num_tokens":
		n.capacity.add(s, rank)
	case "sglang:page_size":
		set(&r.BlockTokens, s)
	case "sglang:context_len":
		set(&r.ContextTokens, s)
	case "sglang:prompt_tokens_total":
		add(&r.PromptTokens, s)
	case "sglang:cached_tokens_total":
		add(&n.cached, s)
	case "sglang:realtime_tokens_total":
		if string(s.label("mode")) == "prefill_compute" {
			n.computed.add(s, rank)
		}
	case "sglang:per_stage_req_latency_seconds_sum":
		if string(s.label("stage")) == "prefill_forward" {
			n.prefill.add(s, rank)
		}
	case processStart:
		set(&r.StartTime, s)
	}
}

// isTotal is false for samples that repeat, by priority, what the one without
// a priority counts in full.
func isTotal(s sample) bool { return len(s.label("priority")) == 0 }

func (n *sglangScheduler) settle(r *Report) {
	r.Running = n.running.total()
	r.Waiting = n.waiting.total()
	r.KVUsage = share(n.usage.sum())
	r.CapacityTokens = n.capacity.total()
	r.PrefillSeconds = n.prefill.total()
	r.PrefixQueries = r.PromptTokens
	r.PrefixHits = n.cached
	if Known(r.PromptTokens) && !Known(n.cached) {
		r.PrefixHits = 0 // the counter appears with the first hit
	}
	if r.PrefixHits > 0 {
		r.PrefixCaching = On
	}
	r.ComputedTokens = first(n.computed.total(), difference(r.PromptTokens, r.PrefixHits))
}

type sglangLoads struct {
	Loads []struct {
		Running   *float64 `json:"num_running_reqs"`
		Waiting   float64  `json:"num_waiting_reqs"`
		Used      float64  `json:"num_used_tokens"`
		Capacity  float64  `json:"max_total_num_tokens"`
		Usage     *float64 `json:"token_usage"`
		MaxActive float64  `json:"max_running_requests"`
	} `json:"loads"`
}

func readSGLangLoads(body []byte, r *Report) bool {
	var l sglangLoads
	if !decode(body, &l) || len(l.Loads) == 0 {
		return false
	}
	var used, usage, n float64
	for _, rank := range l.Loads {
		if rank.Running == nil {
			return false
		}
		addNumber(&r.Running, *rank.Running)
		addNumber(&r.Waiting, rank.Waiting)
		used += rank.Used
		if rank.Usage != nil {
			usage += *rank.Usage
			n++
		}
	}
	limits(&l, r)
	r.KVUsage = first(share(usage, n), share(used, r.CapacityTokens))
	return true
}

// readSGLangLimits reads only what /metrics does not tell.
func readSGLangLimits(body []byte, r *Report) bool {
	var l sglangLoads
	if !decode(body, &l) || len(l.Loads) == 0 {
		return false
	}
	limits(&l, r)
	return true
}

func limits(l *sglangLoads, r *Report) {
	for _, rank := range l.Loads {
		if rank.Capacity > 0 {
			addNumber(&r.CapacityTokens, rank.Capacity)
		}
		if rank.MaxActive > 0 {
			addNumber(&r.Slots, rank.MaxActive)
		}
	}
}

func readSGLangGetLoad(body []byte, r *Report) bool {
	var list []struct {
		Requests *float64 `json:"num_reqs"`
		Waiting  float64  `json:"num_waiting_reqs"`
	}
	if !decode(body, &list) || len(list) == 0 {
		return false
	}
	for _, rank := range list {
		if rank.Requests == nil {
			return false
		}
		addNumber(&r.Running, max(*rank.Requests-rank.Waiting, 0))
		addNumber(&r.Waiting, rank.Waiting)
	}
	return true
}
