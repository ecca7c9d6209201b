package health

import "testing"

// The pages have the names of the versions that ENGINES.md tells apart.
var vllmPages = map[string]struct {
	page    string
	want    map[string]float64
	caching Setting
	asleep  bool
}{
	"0.8.5, V0 engine": {page: `
vllm:num_requests_running{model_name="m"} 2.0
vllm:num_requests_waiting{model_name="m"} 1.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:gpu_prefix_cache_hit_rate{model_name="m"} 0.3
vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="100"} 1.0
`, want: map[string]float64{
		"running": 2, "waiting": 1, "kv_usage": 0.5, "capacity_tokens": 1600, "block_tokens": 16,
	}, caching: Off},

	"0.8.5, V1 engine": {page: `
process_start_time_seconds 1.7e+09
vllm:num_requests_running{model_name="m"} 2.0
vllm:num_requests_waiting{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:gpu_prefix_cache_queries_total{model_name="m"} 1000.0
vllm:gpu_prefix_cache_queries_created{model_name="m"} 1.7e+09
vllm:gpu_prefix_cache_hits_total{model_name="m"} 400.0
vllm:prompt_tokens_total{model_name="m"} 1000.0
vllm:request_prefill_time_seconds_bucket{le="0.3",model_name="m"} 5.0
vllm:request_prefill_time_seconds_sum{model_name="m"} 0.6
vllm:request_prefill_time_seconds_count{model_name="m"} 5.0
`, want: map[string]float64{
		"start_time": 1.7e9, "running": 2, "waiting": 0, "kv_usage": 0.5, "prefix_queries": 1000,
		"prefix_hits": 400, "prompt_tokens": 1000, "computed_tokens": 600, "prefill_seconds": 0.6,
	}},

	"0.9 to 0.11, both names": {page: `
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 400.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 400.0
`, want: map[string]float64{
		"running": 2, "waiting": 0, "kv_usage": 0.25, "prefix_queries": 1000, "prefix_hits": 400,
	}},

	"0.12, offload connector": {page: `
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.27
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 61440.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 30720.0
vllm:external_prefix_cache_queries_total{engine="0",model_name="m"} 30720.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 10000.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 61440.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="0",num_gpu_blocks="8192",num_cpu_blocks="None"} 1.0
`, want: map[string]float64{
		"running": 3, "waiting": 4, "kv_usage": 0.27, "prefix_queries": 61440, "prefix_hits": 30720,
		"prompt_tokens": 61440, "computed_tokens": 20720, "capacity_tokens": 131072, "block_tokens": 16,
	}, caching: On},

	"2026-02, prompt tokens by source": {page: `
vllm:num_requests_running{engine="0",model_name="m"} 0.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"} 500.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_cache_hit"} 400.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="external_kv_transfer"} 100.0
vllm:prompt_tokens_cached_total{engine="0",model_name="m"} 500.0
`, want: map[string]float64{"running": 0, "prompt_tokens": 1000, "computed_tokens": 500}},

	"2026-04 to 0.24, hybrid model, waiting by reason": {page: `
vllm:num_requests_running{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting{engine="0",model_name="m"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="deferred"} 2.0
vllm:prompt_tokens_cached_total{engine="0",model_name="m"} 300.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
vllm:request_prefill_kv_computed_tokens_sum{engine="0",model_name="m"} 650.0
vllm:request_prefill_kv_computed_tokens_count{engine="0",model_name="m"} 7.0
vllm:cache_config_info{block_size="528",enable_prefix_caching="True",engine="0",kv_cache_max_concurrency="4.5",kv_cache_size_tokens="70000",num_gpu_blocks="2000",prefix_match_unit="None"} 1.0
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} 1.0
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="weights_offloaded"} 0.0
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="discard_all"} 0.0
`, want: map[string]float64{
		"running": 1, "waiting": 5, "prompt_tokens": 1000, "computed_tokens": 650,
		"capacity_tokens": 70000, "block_tokens": 528,
	}, caching: On},

	"capacity not yet known": {page: `
vllm:num_requests_running{engine="0"} 1.0
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="None",num_gpu_blocks="None"} 1.0
`, want: map[string]float64{"running": 1, "block_tokens": 16}},

	"asleep": {page: `
vllm:num_requests_running{engine="0"} 0.0
vllm:engine_sleep_state{engine="0",sleep_state="awake"} 0.0
vllm:engine_sleep_state{engine="0",sleep_state="weights_offloaded"} 1.0
`, want: map[string]float64{"running": 0}, asleep: true},

	"two data-parallel ranks": {page: `
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 5.0
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:num_requests_waiting{engine="1",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.6
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 10.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 20.0
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="1000",num_gpu_blocks="70"} 1.0
vllm:cache_config_info{block_size="16",engine="1",kv_cache_size_tokens="None",num_gpu_blocks="100"} 1.0
`, want: map[string]float64{
		"running": 8, "waiting": 2, "kv_usage": 0.4, "prefix_queries": 30,
		"capacity_tokens": 2600, "block_tokens": 16,
	}},
}

func TestVLLM(t *testing.T) {
	for name, tt := range vllmPages {
		t.Run(name, func(t *testing.T) {
			r := unknown()
			if !readVLLM([]byte(tt.page), &r) {
				t.Fatal("the page is refused")
			}
			wantTold(t, r, tt.want)
			if r.PrefixCaching != tt.caching || r.Sleeping != tt.asleep {
				t.Errorf("prefix caching %s, sleeping %t", r.PrefixCaching, r.Sleeping)
			}
		})
	}
}

func TestVLLMLikeRecordings(t *testing.T) {
	idle := map[string]float64{
		"running": 0, "waiting": 0, "kv_usage": 0, "capacity_tokens": 16384, "block_tokens": 16,
	}
	r := unknown()
	if !readVLLM(recording(t, "vllm-like/metrics-idle.txt"), &r) {
		t.Fatal("the idle page is refused")
	}
	wantTold(t, r, idle)

	r = unknown()
	if !readVLLM(recording(t, "vllm-like/metrics-after.txt.gz"), &r) {
		t.Fatal("the page is refused")
	}
	idle["prefix_queries"], idle["prefix_hits"], idle["prompt_tokens"] = 240, 160, 240
	idle["computed_tokens"], idle["prefill_seconds"] = 80, 0.095562954
	wantTold(t, r, idle)
}

func TestModels(t *testing.T) {
	r := unknown()
	if !readModels(recording(t, "vllm-like/models.json"), &r) {
		t.Fatal("the list is refused")
	}
	wantTold(t, r, map[string]float64{"context_tokens": 32768})

	owners := map[string]*dialect{
		"vllm": &vllm, "sglang": &sglang, "llamacpp": &llamacpp, "tensorrt_llm": &trtllm,
		"lmdeploy": &lmdeploy, "library": &ollama, "openai": nil, "": nil,
	}
	for owner, want := range owners {
		body := []byte(`{"object":"list","data":[{"id":"m","owned_by":"` + owner + `"}]}`)
		if got := nameItself(dialects, body); got != want {
			t.Errorf("owner %q is recognised as %v", owner, got)
		}
	}
	if got := nameItself(dialects, recording(t, "llamacpp/models.json")); got != &llamacpp {
		t.Errorf("the recorded list of llama.cpp is recognised as %v", got)
	}
	if got := nameItself(dialects, []byte("<html>")); got != nil {
		t.Errorf("HTML is recognised as %v", got)
	}
}
