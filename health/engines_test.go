package health

import (
	"strings"
	"testing"
)

const sglangPage = `
sglang:num_running_reqs{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 7.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 2.0
sglang:num_grammar_queue_reqs{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.0
sglang:token_usage{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.31
sglang:full_token_usage{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.30
sglang:cache_hit_rate{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.9
sglang:page_size{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 1.0
sglang:max_total_num_tokens{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 161721.0
sglang:context_len{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 32768.0
sglang:prompt_tokens_total{engine_type="unified",is_streaming="true",model_name="m"} 600.0
sglang:prompt_tokens_total{engine_type="unified",is_streaming="false",model_name="m"} 400.0
sglang:cached_tokens_total{cache_source="device",engine_type="unified",model_name="m"} 250.0
sglang:cached_tokens_total{cache_source="host",engine_type="unified",model_name="m"} 50.0
sglang:per_stage_req_latency_seconds_sum{engine_type="unified",model_name="m",pp_rank="0",stage="prefill_forward",tp_rank="0"} 1.5
sglang:per_stage_req_latency_seconds_sum{engine_type="unified",model_name="m",pp_rank="0",stage="request_process",tp_rank="0"} 0.1
`

const trtllmPage = `
trtllm_num_requests_running{engine_type="trtllm",model_name="m"} 4.0
trtllm_num_requests_waiting{engine_type="trtllm",model_name="m"} 1.0
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.4
trtllm_kv_cache_hit_rate{engine_type="trtllm",model_name="m"} 0.7
trtllm_kv_cache_reused_blocks_total{engine_type="trtllm",model_name="m"} 70.0
trtllm_kv_cache_missed_blocks_total{engine_type="trtllm",model_name="m"} 30.0
trtllm_kv_cache_max_blocks{engine_type="trtllm",model_name="m"} 1000.0
trtllm_kv_cache_free_blocks{engine_type="trtllm",model_name="m"} 600.0
trtllm_kv_cache_used_blocks{engine_type="trtllm",model_name="m"} 400.0
trtllm_kv_cache_tokens_per_block{engine_type="trtllm",model_name="m"} 32.0
trtllm_request_prefill_time_seconds_sum{engine_type="trtllm",model_name="m"} 2.5
`

const tgiPage = `
tgi_queue_size 3
tgi_batch_current_size 5
tgi_batch_max_total_tokens 98000
tgi_request_count{method="generate"} 10
tgi_request_input_length_bucket{le="10"} 1
tgi_request_input_length_sum 5000
tgi_request_input_length_count 10
tgi_batch_inference_duration_sum{method="prefill"} 1.25
tgi_batch_inference_duration_sum{method="decode"} 20
`

const lmdeployPage = `
lmdeploy:num_requests_running{engine="0",model_name="m"} 2.0
lmdeploy:num_requests_running{engine="1",model_name="m"} 3.0
lmdeploy:num_requests_waiting{engine="0",model_name="m"} 1.0
lmdeploy:num_api_requests_waiting{engine="0",model_name="m"} 4.0
lmdeploy:gpu_cache_usage_perc{engine="0",model_name="m"} 0.2
lmdeploy:gpu_cache_usage_perc{engine="1",model_name="m"} 0.4
lmdeploy:prefix_cache_hit_rate{engine="0",model_name="m"} 0.0
lmdeploy:prompt_tokens_total{engine="0",model_name="m"} 800.0
lmdeploy:cached_tokens_total{engine="0",model_name="m"} 0.0
lmdeploy:request_prefill_time_seconds_sum{engine="0",model_name="m"} 0.75
`

// engineTests has a page of every form in which an engine other than vLLM
// reports.
var engineTests = map[string]struct {
	page    page
	body    string
	want    map[string]float64
	caching Setting
	asleep  bool
	assumed bool
}{
	"SGLang": {page: sglang.load[0], body: sglangPage, want: map[string]float64{
		"running": 7, "waiting": 2, "kv_usage": 0.31, "capacity_tokens": 161721, "block_tokens": 1,
		"context_tokens": 32768, "prompt_tokens": 1000, "prefix_queries": 1000, "prefix_hits": 300,
		"computed_tokens": 700, "prefill_seconds": 1.5,
	}, caching: On},
	"SGLang, data-parallel and tensor ranks": {page: sglang.load[0], body: `
sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 7.0
sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 7.0
sglang:num_running_reqs{dp_rank="1",tp_rank="2"} 5.0
sglang:token_usage{dp_rank="0",tp_rank="0"} 0.2
sglang:token_usage{dp_rank="1",tp_rank="2"} 0.6
sglang:max_total_num_tokens{dp_rank="0",tp_rank="0"} 1000.0
sglang:max_total_num_tokens{dp_rank="0",tp_rank="1"} 1000.0
sglang:max_total_num_tokens{dp_rank="1",tp_rank="2"} 1000.0
sglang:realtime_tokens_total{dp_rank="0",mode="prefill_compute",tp_rank="0"} 30.0
sglang:realtime_tokens_total{dp_rank="1",mode="prefill_compute",tp_rank="2"} 40.0
sglang:realtime_tokens_total{dp_rank="1",mode="prefill_cache",tp_rank="2"} 90.0
`, want: map[string]float64{
		"running": 12, "kv_usage": 0.4, "capacity_tokens": 2000, "computed_tokens": 70,
	}},
	"SGLang, priorities": {page: sglang.load[0], body: `
sglang:num_running_reqs{priority="",tp_rank="0"} 7.0
sglang:num_running_reqs{priority="1",tp_rank="0"} 9.0
sglang:num_queue_reqs{priority="",tp_rank="0"} 1.0
sglang:num_queue_reqs{priority="None",tp_rank="0"} 9.0
sglang:prompt_tokens_total{model_name="m"} 10.0
`, want: map[string]float64{
		"running": 7, "waiting": 1, "prompt_tokens": 10, "prefix_queries": 10, "prefix_hits": 0,
		"computed_tokens": 10,
	}},
	"SGLang, /v1/loads": {page: sglang.load[1], body: `{"timestamp":"t","loads":[
{"dp_rank":0,"num_running_reqs":3,"num_waiting_reqs":1,"num_used_tokens":100,"max_total_num_tokens":1000,"token_usage":0.1,"cache_hit_rate":0.5,"max_running_requests":8},
{"dp_rank":1,"num_running_reqs":2,"num_waiting_reqs":0,"num_used_tokens":300,"max_total_num_tokens":1000,"token_usage":0.3,"cache_hit_rate":0.5,"max_running_requests":8}]}`,
		want: map[string]float64{
			"running": 5, "waiting": 1, "kv_usage": 0.2, "capacity_tokens": 2000, "slots": 16,
		}},
	"SGLang, /v1/loads without usage": {page: sglang.load[1],
		body: `{"loads":[{"num_running_reqs":3,"num_used_tokens":100,"max_total_num_tokens":1000}]}`,
		want: map[string]float64{"running": 3, "waiting": 0, "kv_usage": 0.1, "capacity_tokens": 1000}},
	"SGLang, /get_load": {page: sglang.load[2],
		body: `[{"dp_rank":0,"num_reqs":5,"num_waiting_reqs":2,"num_tokens":100},{"dp_rank":1,"num_reqs":1,"num_waiting_reqs":0,"num_tokens":1}]`,
		want: map[string]float64{"running": 4, "waiting": 2}},
	"SGLang, limits": {page: sglang.facts[0],
		body: `{"loads":[{"num_running_reqs":3,"max_total_num_tokens":1000,"max_running_requests":8}]}`,
		want: map[string]float64{"capacity_tokens": 1000, "slots": 8}},

	"llama.cpp, early 2025": {page: llamacpp.load[0], body: `
llamacpp:prompt_tokens_total 62
llamacpp:prompt_seconds_total 0.5
llamacpp:kv_cache_usage_ratio 0.125
llamacpp:kv_cache_tokens 512
llamacpp:requests_processing 1
llamacpp:requests_deferred 2
`, want: map[string]float64{
		"running": 1, "waiting": 2, "kv_usage": 0.125, "computed_tokens": 62, "prefill_seconds": 0.5,
		"block_tokens": 1,
	}, caching: On},
	"llama.cpp, asleep": {page: llamacpp.load[2],
		body:    `{"default_generation_settings":{"n_ctx":4096},"total_slots":4,"is_sleeping":true}`,
		want:    map[string]float64{"slots": 4, "context_tokens": 4096, "capacity_tokens": 16384, "block_tokens": 1},
		caching: On, asleep: true},
	"llama.cpp, a busy slot": {page: llamacpp.load[1],
		body:    `[{"id":0,"n_ctx":4096,"is_processing":true},{"id":1,"n_ctx":4096,"is_processing":false}]`,
		want:    map[string]float64{"running": 1, "slots": 2, "context_tokens": 4096, "capacity_tokens": 8192, "block_tokens": 1},
		caching: On},

	"TensorRT-LLM": {page: trtllm.load[0], body: trtllmPage, want: map[string]float64{
		"running": 4, "waiting": 1, "kv_usage": 0.4, "capacity_tokens": 32000, "block_tokens": 32,
		"prefix_queries": 3200, "prefix_hits": 2240, "prefill_seconds": 2.5,
	}, caching: On},
	"TensorRT-LLM, cached tokens told": {page: trtllm.load[0], body: trtllmPage + `
trtllm_prompt_tokens_total{engine_type="trtllm",model_name="m"} 3000.0
trtllm_prompt_cached_tokens_total{engine_type="trtllm",model_name="m"} 2000.0
`, want: map[string]float64{
		"running": 4, "waiting": 1, "kv_usage": 0.4, "capacity_tokens": 32000, "block_tokens": 32,
		"prefix_queries": 3000, "prefix_hits": 2000, "prompt_tokens": 3000, "computed_tokens": 1000,
		"prefill_seconds": 2.5,
	}, caching: On},
	"TensorRT-LLM, request metrics only": {page: trtllm.load[0], body: `
trtllm_prompt_tokens_total{engine_type="trtllm",model_name="m"} 3000.0
`, want: map[string]float64{"prompt_tokens": 3000}},

	"TGI": {page: tgi.load[0], body: tgiPage, want: map[string]float64{
		"running": 5, "waiting": 3, "capacity_tokens": 98000, "prompt_tokens": 5000, "prefill_seconds": 1.25,
	}},
	"TGI, info": {page: tgi.facts[0], body: `{"model_id":"m","max_input_tokens":4095,"max_total_tokens":4096}`,
		want: map[string]float64{"context_tokens": 4096}},

	"LMDeploy, no prefix cache": {page: lmdeploy.load[0], body: lmdeployPage, want: map[string]float64{
		"running": 5, "waiting": 5, "kv_usage": 0.3, "prompt_tokens": 800, "prefix_queries": 800,
		"prefix_hits": 0, "computed_tokens": 800, "prefill_seconds": 0.75,
	}, caching: Off},
	"LMDeploy, prefix cache": {page: lmdeploy.load[0],
		body: strings.ReplaceAll(lmdeployPage, `cached_tokens_total{engine="0",model_name="m"} 0.0`, `cached_tokens_total{engine="0",model_name="m"} 64`),
		want: map[string]float64{
			"running": 5, "waiting": 5, "kv_usage": 0.3, "prompt_tokens": 800, "prefix_queries": 800,
			"prefix_hits": 64, "computed_tokens": 736, "prefill_seconds": 0.75,
		}, caching: On},
	"LMDeploy, asleep": {page: lmdeploy.facts[0], body: `{"is_sleeping":true}`,
		want: map[string]float64{}, asleep: true},

	"Ollama": {page: ollama.load[0], body: `{"models":[{"name":"llama3.2","model":"llama3.2","size":1,"size_vram":1,"digest":"d","details":{},"expires_at":"2026-08-21T00:00:00Z","context_length":4096}]}`,
		want:    map[string]float64{"slots": 1, "context_tokens": 4096, "capacity_tokens": 4096},
		caching: On, assumed: true},
	"Ollama, no model loaded": {page: ollama.load[0], body: `{"models":[]}`,
		want: map[string]float64{"slots": 1}, caching: On, asleep: true, assumed: true},
}

func TestEngines(t *testing.T) {
	for name, tt := range engineTests {
		t.Run(name, func(t *testing.T) {
			var r Report
			if !tt.page.into(&r, []byte(tt.body)) {
				t.Fatal("the page is refused")
			}
			wantTold(t, r, tt.want)
			if private := strings.HasPrefix(name, "llama.cpp") || strings.HasPrefix(name, "Ollama"); r.PrivateSlots != private {
				t.Errorf("private slots %t, want %t", r.PrivateSlots, private)
			}
			if r.PrefixCaching != tt.caching || r.Sleeping != tt.asleep || r.SlotsAssumed != tt.assumed {
				t.Errorf("prefix caching %s, sleeping %t, slots assumed %t",
					r.PrefixCaching, r.Sleeping, r.SlotsAssumed)
			}
		})
	}
}

func TestLlamaRecordings(t *testing.T) {
	tests := map[string]struct {
		page page
		want map[string]float64
	}{
		"metrics-idle.txt": {llamacpp.load[0], map[string]float64{
			"running": 0, "waiting": 0, "prompt_tokens": 0, "computed_tokens": 0, "prefix_queries": 0,
			"prefix_hits": 0, "prefill_seconds": 0, "block_tokens": 1,
		}},
		"metrics-after.txt": {llamacpp.load[0], map[string]float64{
			"running": 0, "waiting": 0, "prompt_tokens": 204, "computed_tokens": 62, "prefix_queries": 204,
			"prefix_hits": 142, "prefill_seconds": 0.014111, "block_tokens": 1,
		}},
		"slots-idle.json": {llamacpp.load[1], map[string]float64{
			"running": 0, "slots": 2, "context_tokens": 8192, "capacity_tokens": 16384, "block_tokens": 1,
		}},
		"slots-after.json": {llamacpp.load[1], map[string]float64{
			"running": 0, "slots": 2, "context_tokens": 8192, "capacity_tokens": 16384, "block_tokens": 1,
		}},
		"props.json": {llamacpp.facts[0], map[string]float64{
			"slots": 2, "context_tokens": 8192, "capacity_tokens": 16384, "block_tokens": 1,
		}},
	}
	for file, tt := range tests {
		var r Report
		if !tt.page.into(&r, recording(t, "llamacpp/"+file)) {
			t.Errorf("%s is refused", file)
			continue
		}
		wantTold(t, r, tt.want)
		if !r.PrivateSlots {
			t.Errorf("%s does not tell that slots are private", file)
		}
	}
}

// TestPagesOfOthers gives every page to every other engine's reader, and what
// no engine writes to all of them.
func TestPagesOfOthers(t *testing.T) {
	bodies := map[string]*dialect{
		vllmPages["0.8.5, V1 engine"].page: &vllm, sglangPage: &sglang, trtllmPage: &trtllm,
		tgiPage: &tgi, lmdeployPage: &lmdeploy, string(recording(t, "llamacpp/metrics-after.txt")): &llamacpp,
		string(recording(t, "llamacpp/slots-after.json")): &llamacpp,
		"": nil, "<!doctype html><title>vllm:num_requests_running 1</title>": nil, "{}": nil, "[]": nil,
		"null": nil, `{"status":"ok"}`: nil, "process_start_time_seconds 1.7e9\ngo_goroutines 7\n": nil,
		`[{"iterLatencyMS":1,"numActiveRequests":2}]`: nil, `[null]`: nil, `[{}]`: nil,
		`{"loads":[{}]}`: nil, `{"models":null}`: nil, `{"loads":[]}`: nil,
	}
	for body, owner := range bodies {
		for _, d := range dialects {
			for _, p := range d.load {
				if p.into(new(Report), []byte(body)) && d != owner {
					t.Errorf("%s reads as a page of %s:\n%.80s", p.path, d.engine, body)
				}
			}
		}
	}
}

func TestRefusedNumbers(t *testing.T) {
	var r Report
	body := `{"loads":[{"num_running_reqs":-3,"max_total_num_tokens":1e308},` +
		`{"num_running_reqs":1,"max_total_num_tokens":1e308,"token_usage":7}]}`
	if !sglang.load[1].into(&r, []byte(body)) {
		t.Fatal("the page is refused")
	}
	wantTold(t, r, map[string]float64{"waiting": 0, "kv_usage": 1})
}

func TestTooMuchJSON(t *testing.T) {
	body := `{"models":[` + strings.Repeat(" ", maxJSON) + `]}`
	if ollama.load[0].into(new(Report), []byte(body)) {
		t.Error("a JSON page beyond the bound is read")
	}
}
