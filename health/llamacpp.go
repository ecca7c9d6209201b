package health

import "math"

// llamacpp reads llama.cpp's server: /metrics exists only with --metrics,
// /slots can be switched off, /props is always there
// (tools/server/server-task.cpp, server-context.cpp). While the server sleeps,
// only /props can be asked without waking it; polling /metrics or /slots
// counts as activity to --sleep-idle-seconds.
var llamacpp = dialect{
	engine: "llamacpp",
	owner:  "llamacpp",
	load: []page{
		{metricsPath, readLlama},
		{"/slots", readLlamaSlots},
		{llamaPropsPath, readLlamaProps},
	},
	facts: []page{{llamaPropsPath, readLlamaProps}},
}

const llamaPropsPath = "/props"

func readLlama(body []byte, r *Report) bool {
	cached := math.NaN()
	for s := range samples(body) {
		switch string(s.name) {
		case "llamacpp:requests_processing":
			set(&r.Running, s)
		case "llamacpp:requests_deferred":
			set(&r.Waiting, s)
		case "llamacpp:kv_cache_usage_ratio": // until 2025
			set(&r.KVUsage, s)
		case "llamacpp:prompt_tokens_total":
			set(&r.ComputedTokens, s)
		case "llamacpp:prompt_tokens_cached_total":
			set(&cached, s)
		case "llamacpp:prompt_seconds_total":
			set(&r.PrefillSeconds, s)
		case processStart:
			set(&r.StartTime, s)
		}
	}
	r.KVUsage = share(r.KVUsage, 1)
	r.PromptTokens = r.ComputedTokens + cached
	r.PrefixQueries, r.PrefixHits = r.PromptTokens, cached
	if !r.tells() {
		return false
	}
	llamaCache(r)
	return true
}

// llamaCache tells what holds for every llama.cpp: a slot keeps the sequence
// it worked on last, token by token.
func llamaCache(r *Report) {
	r.BlockTokens = 1
	r.PrefixCaching, r.PrivateSlots = On, true
}

func readLlamaSlots(body []byte, r *Report) bool {
	var slots []struct {
		Context    float64 `json:"n_ctx"`
		Processing *bool   `json:"is_processing"`
	}
	if !decode(body, &slots) || len(slots) == 0 {
		return false
	}
	r.Running, r.Slots = 0, float64(len(slots))
	for _, slot := range slots {
		if slot.Processing == nil {
			return false
		}
		if *slot.Processing {
			r.Running++
		}
		if slot.Context > 0 {
			r.ContextTokens = slot.Context
			addNumber(&r.CapacityTokens, slot.Context)
		}
	}
	llamaCache(r)
	return true
}

// readLlamaProps takes the capacity for slots x context. With a unified KV
// cache, which the page does not tell, all slots share one context and it is
// less by that factor.
func readLlamaProps(body []byte, r *Report) bool {
	var props struct {
		Slots    float64 `json:"total_slots"`
		Sleeping bool    `json:"is_sleeping"`
		Settings struct {
			Context float64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if !decode(body, &props) || props.Slots < 1 {
		return false
	}
	r.Slots, r.Sleeping = props.Slots, props.Sleeping
	if props.Settings.Context > 0 {
		r.ContextTokens = props.Settings.Context
		r.CapacityTokens = props.Slots * props.Settings.Context
	}
	llamaCache(r)
	return true
}
