package health

// ollama reads the list of loaded models, all that Ollama tells. A model that
// is not loaded has no KV cache.
var ollama = dialect{
	engine: "ollama",
	owner:  "library",
	load:   []page{{"/api/ps", readOllama}},
}

func readOllama(body []byte, r *Report) bool {
	var ps struct {
		Models *[]struct {
			Context float64 `json:"context_length"`
		} `json:"models"`
	}
	if !decode(body, &ps) || ps.Models == nil {
		return false
	}
	// OLLAMA_NUM_PARALLEL is 1 unless set, and no page tells it.
	r.Slots, r.SlotsAssumed = 1, true
	r.PrefixCaching, r.PrivateSlots = On, true // it runs llama.cpp
	r.Sleeping = len(*ps.Models) == 0
	for _, m := range *ps.Models {
		if m.Context > 0 {
			r.ContextTokens = max(first(r.ContextTokens, 0), m.Context)
		}
	}
	r.CapacityTokens = r.ContextTokens
	return true
}
