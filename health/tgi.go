package health

// tgi reads Text Generation Inference (router/src/server.rs, backends/v3/src).
// It tells neither KV usage nor hits.
var tgi = dialect{
	engine: "tgi",
	load:   []page{{metricsPath, readTGI}},
	facts:  []page{{"/info", readTGIInfo}},
}

func readTGI(body []byte, r *Report) bool {
	for s := range samples(body) {
		switch string(s.name) {
		case "tgi_batch_current_size":
			add(&r.Running, s)
		case "tgi_queue_size":
			add(&r.Waiting, s)
		case "tgi_batch_max_total_tokens":
			set(&r.CapacityTokens, s)
		case "tgi_request_input_length_sum":
			add(&r.PromptTokens, s)
		case "tgi_batch_inference_duration_sum":
			if string(s.label("method")) == "prefill" {
				add(&r.PrefillSeconds, s)
			}
		case processStart:
			set(&r.StartTime, s)
		}
	}
	return r.tells()
}

func readTGIInfo(body []byte, r *Report) bool {
	var info struct {
		MaxTotalTokens float64 `json:"max_total_tokens"`
	}
	if !decode(body, &info) || info.MaxTotalTokens <= 0 {
		return false
	}
	r.ContextTokens = info.MaxTotalTokens
	return true
}
