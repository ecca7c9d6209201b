package health

import "encoding/json"

// modelsPage is the list of models that every engine with an OpenAI-compatible
// API serves. Engines name themselves in it, and some tell the context length.
var modelsPage = page{"/v1/models", readModels}

type modelList struct {
	Data []struct {
		OwnedBy     string  `json:"owned_by"`
		MaxModelLen float64 `json:"max_model_len"`
	} `json:"data"`
}

func readModels(body []byte, r *Report) bool {
	var list modelList
	if !decode(body, &list) || len(list.Data) == 0 {
		return false
	}
	for _, m := range list.Data {
		if m.MaxModelLen > 0 {
			r.ContextTokens = max(first(r.ContextTokens, 0), m.MaxModelLen)
		}
	}
	return true
}

// nameItself returns the dialect of the engine that names itself in a list of
// models, nil if none does.
func nameItself(among []*dialect, body []byte) *dialect {
	var list modelList
	if !decode(body, &list) {
		return nil
	}
	for _, m := range list.Data {
		for _, d := range among {
			if d.owner != "" && d.owner == m.OwnedBy {
				return d
			}
		}
	}
	return nil
}

// maxJSON bounds JSON pages more tightly than text: decoding takes several
// times their size in memory, and real ones are a few KB.
const maxJSON = 1 << 20

func decode(body []byte, into any) bool {
	return len(body) <= maxJSON && json.Unmarshal(body, into) == nil
}
