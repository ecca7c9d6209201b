package engine

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// metricsPage writes series in the text format of Prometheus, with vLLM's names
// and labels.
type metricsPage struct {
	bytes.Buffer
	model string
}

func (p *metricsPage) add(name, kind string, value float64) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, helps[name], name, kind)
	fmt.Fprintf(p, "%s{engine=\"0\",model_name=%q} %v\n", name, p.model, value)
}

// histogram writes a histogram without inner buckets: its users want the mean.
func (p *metricsPage) histogram(name string, sum float64, count int) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s histogram\n", name, helps[name], name)
	fmt.Fprintf(p, "%s_bucket{engine=\"0\",le=\"+Inf\",model_name=%q} %d\n", name, p.model, count)
	fmt.Fprintf(p, "%s_sum{engine=\"0\",model_name=%q} %v\n", name, p.model, sum)
	fmt.Fprintf(p, "%s_count{engine=\"0\",model_name=%q} %d\n", name, p.model, count)
}

var helps = map[string]string{
	"vllm:num_requests_running":               "Requests in the batch.",
	"vllm:num_requests_waiting":               "Requests waiting for admission.",
	"vllm:kv_cache_usage_perc":                "Share of KV blocks held by requests, 0 to 1.",
	"vllm:prefix_cache_queries_total":         "Prompt tokens looked up in the prefix cache.",
	"vllm:prefix_cache_hits_total":            "Prompt tokens found in the prefix cache.",
	"vllm:prompt_tokens_total":                "Prompt tokens processed.",
	"vllm:generation_tokens_total":            "Tokens generated.",
	"vllm:num_preemptions_total":              "Preemptions.",
	"vllm:request_success_total":              "Finished requests.",
	"vllm:request_prefill_time_seconds":       "Time from admission to first token.",
	"vllm:request_queue_time_seconds":         "Time from arrival to admission.",
	"vllm:request_prefill_kv_computed_tokens": "Prompt tokens computed, not cached.",
}

func (s *Server) metrics(l *life, w http.ResponseWriter) {
	st := l.runner.stats()
	profile := s.options.Profile
	p := &metricsPage{model: s.options.Models[0]}
	p.add("vllm:num_requests_running", "gauge", float64(st.Running))
	p.add("vllm:num_requests_waiting", "gauge", float64(st.Waiting))
	p.add("vllm:kv_cache_usage_perc", "gauge", float64(st.UsedTokens)/float64(profile.Capacity()))
	p.add("vllm:prefix_cache_queries_total", "counter", float64(st.QueriedTokens))
	p.add("vllm:prefix_cache_hits_total", "counter", float64(st.CachedTokens))
	p.add("vllm:prompt_tokens_total", "counter", float64(st.PromptTokens))
	p.add("vllm:generation_tokens_total", "counter", float64(st.GeneratedTokens))
	p.add("vllm:num_preemptions_total", "counter", float64(st.Preemptions))
	p.add("vllm:request_success_total", "counter", float64(st.Requests))
	p.histogram("vllm:request_prefill_time_seconds", st.PrefillTime.Seconds(), st.FirstTokens)
	p.histogram("vllm:request_queue_time_seconds", st.QueueTime.Seconds(), st.FirstTokens)
	p.histogram("vllm:request_prefill_kv_computed_tokens", float64(st.UncachedTokens), st.FirstTokens)
	fmt.Fprintf(p, "# HELP vllm:cache_config_info Information of the engine's cache configuration.\n"+
		"# TYPE vllm:cache_config_info gauge\n"+
		"vllm:cache_config_info{block_size=\"%d\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\","+
		"kv_cache_size_tokens=\"%d\",num_cpu_blocks=\"None\",num_gpu_blocks=\"%d\"} 1.0\n",
		profile.BlockSize, profile.Capacity(), profile.Blocks)
	fmt.Fprintf(p, "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"+
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.6f\n",
		float64(l.started.UnixNano())/float64(time.Second))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.Bytes()) // fails only if the client has left
}
