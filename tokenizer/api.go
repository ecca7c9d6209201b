package tokenizer

// API is a family of requests that are read in the same way.
type API uint8

const (
	None           API = iota
	Chat               // OpenAI chat completions
	Completions        // OpenAI completions, llama.cpp /completion
	Responses          // OpenAI responses
	Messages           // Anthropic messages
	OllamaChat         // Ollama /api/chat
	OllamaGenerate     // Ollama /api/generate
	Infill             // llama.cpp /infill
	NativeGenerate     // SGLang, TGI, vLLM and Triton generate
	Embeddings         // OpenAI embeddings, Ollama /api/embed, pooling
	Pairs              // rerank, score: a query with each of several texts
	numAPIs
)

// api says how the requests of one family are known and read.
type api struct {
	name     string
	kind     Kind
	evidence []field // any of these makes a body one of this family
	read     func(*reader)
}

var apis [numAPIs]api

func init() {
	apis = [numAPIs]api{
		None:        {name: "none"},
		Chat:        {"chat", Generate, []field{fMessages}, (*reader).chat},
		Completions: {"completions", Generate, []field{fPrompt}, (*reader).completions},
	}
}

func (a API) String() string { return apis[a].name }

// recognise returns the API that the path names if the body bears it out, else the one
// that the body looks like.
func (r *reader) recognise(named API) API {
	if r.has(named) {
		return named
	}
	for a := Chat; a < numAPIs; a++ {
		if r.has(a) {
			return a
		}
	}
	return named
}

func (r *reader) has(a API) bool {
	for _, f := range apis[a].evidence {
		if r.present(r.top[f]) {
			return true
		}
	}
	return false
}
