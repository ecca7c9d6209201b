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
	NativeGenerate     // generate of SGLang, TGI, vLLM and Triton
	Embeddings         // OpenAI embeddings, Ollama /api/embed, pooling, classify
	Pairs              // rerank and score: a query with each of several texts
	numAPIs
)

func (a API) String() string { return apis[a].name }

// api says how the requests of one family are known and read.
type api struct {
	name    string
	kind    Kind
	streams bool // answers are streamed unless the request says no
	read    func(*reader)

	// A path that names the API is believed if the body has one of these fields.
	evidence []field
	// A body on an unknown path is taken for this API if it has all of these fields,
	// or if marked says so.
	marks  []field
	marked func(*reader) bool
}

var apis [numAPIs]api

// init fills apis, whose readers refer to it.
func init() {
	apis = [numAPIs]api{
		None: {name: "none"},
		Messages: {
			name: "messages", kind: Generate, read: (*reader).anthropic,
			evidence: []field{fMessages}, marks: []field{fMessages, fSystem},
		},
		Chat: {
			name: "chat", kind: Generate, read: (*reader).chat,
			evidence: []field{fMessages}, marks: []field{fMessages},
		},
		OllamaChat: {
			name: "ollama_chat", kind: Generate, read: (*reader).chat, streams: true,
			evidence: []field{fMessages},
		},
		Infill: {
			name: "infill", kind: Generate, read: (*reader).infill,
			evidence: []field{fInputPrefix, fInputSuffix}, marks: []field{fInputPrefix, fInputSuffix},
		},
		OllamaGenerate: {
			name: "ollama_generate", kind: Generate, read: (*reader).ollamaGenerate, streams: true,
			evidence: []field{fPrompt, fContext}, marks: []field{fPrompt, fSystem},
		},
		Completions: {
			name: "completions", kind: Generate, read: (*reader).completions,
			evidence: []field{fPrompt, fEmbeds}, marks: []field{fPrompt},
		},
		Responses: {
			name: "responses", kind: Generate, read: (*reader).responses,
			evidence: []field{fInput, fPreviousResponse, fConversation, fInstructions}, marked: (*reader).likeResponses,
		},
		Embeddings: {
			name: "embeddings", kind: Embed, read: (*reader).embeddings,
			evidence: []field{fInput, fTexts}, marks: []field{fInput},
		},
		Pairs: {
			name: "pairs", kind: Embed, read: (*reader).pairs,
			evidence: []field{fQuery, fQueries, fText1}, marks: []field{fQuery, fDocuments},
		},
		NativeGenerate: {
			name: "generate", kind: Generate, read: (*reader).nativeGenerate,
			evidence: []field{fInputs, fTokens}, marked: (*reader).likeNative,
		},
	}
}

// recognise returns the API that the path names if the body bears it out, else the
// first one that the body looks like.
func (r *reader) recognise(named API) API {
	if r.hasAny(apis[named].evidence) {
		return named
	}
	for _, a := range guesses {
		if marks := apis[a].marks; len(marks) > 0 && r.hasAll(marks) {
			return a
		}
		if marked := apis[a].marked; marked != nil && marked(r) {
			return a
		}
	}
	return named
}

// guesses is the order in which bodies on unknown paths are tried: narrow marks first.
var guesses = [...]API{
	Messages, Chat, Infill, OllamaGenerate, Completions, Responses, Embeddings, Pairs, NativeGenerate,
}

func (r *reader) hasAny(fields []field) bool {
	for _, f := range fields {
		if r.present(r.top[f]) {
			return true
		}
	}
	return false
}

func (r *reader) hasAll(fields []field) bool {
	for _, f := range fields {
		if !r.present(r.top[f]) {
			return false
		}
	}
	return true
}
