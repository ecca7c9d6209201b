package tokenizer

import "strings"

// route is what a path alone tells.
type route struct {
	api        API
	kind       Kind
	stream     bool // answers are streamed unless the body says no
	model      string
	responseID string
	other      bool // work without a KV cache, whatever the body looks like
}

type endpoint struct {
	end  string
	api  API
	kind Kind
}

// endpoints lists the ends of known paths; what comes before them is a prefix of the
// deployment. Of two that fit, the earlier one counts.
var endpoints = []endpoint{
	{"/chat/completions", Chat, Generate},
	{"/v1/messages", Messages, Generate},
	{"/responses", Responses, Generate},
	{"/responses/compact", Responses, Generate},
	{"/completions", Completions, Generate},
	{"/completion", Completions, Generate},
	{"/api/chat", OllamaChat, Generate},
	{"/api/generate", OllamaGenerate, Generate},
	{"/infill", Infill, Generate},
	{"/generate", NativeGenerate, Generate},
	{"/generate_stream", NativeGenerate, Generate},

	{"/embeddings", Embeddings, Embed},
	{"/embedding", Embeddings, Embed},
	{"/embed", Embeddings, Embed},
	{"/embed_all", Embeddings, Embed},
	{"/pooling", Embeddings, Embed},
	{"/classify", Embeddings, Embed},
	{"/rerank", Pairs, Embed},
	{"/reranking", Pairs, Embed},
	{"/score", Pairs, Embed},

	{"/count_tokens", Messages, NoWork},
	{"/chat/completions/render", Chat, NoWork},
	{"/chat/completions/input_tokens", Chat, NoWork},
	{"/completions/render", Completions, NoWork},
	{"/responses/input_tokens", Responses, NoWork},
	{"/apply-template", Chat, NoWork},
	{"/tokenize", None, NoWork},
	{"/chat_tokenize", Chat, NoWork},
	{"/detokenize", None, NoWork},
	{"/v1/encode", None, NoWork},
	{"/api/show", None, NoWork},
}

// others lists the ends of paths whose work needs no KV cache.
var others = []string{"/audio/speech", "/images/generations", "/images/edits", "/videos", "/moderations"}

// stores lists the paths under which an id of something that one replica keeps follows.
var stores = []string{"/responses/", "/conversations/"}

func matchPath(path string) (rt route) {
	path = strings.TrimRight(path, "/")
	rt.model = nameAfter(path, "/deployments/")
	for _, e := range endpoints {
		if strings.HasSuffix(path, e.end) {
			rt.api, rt.kind = e.api, e.kind
			rt.stream = e.end == "/generate_stream"
			if rt.model == "" {
				rt.model = nameAfter(path, "/models/")
			}
			return rt
		}
	}
	for _, end := range others {
		rt.other = rt.other || strings.HasSuffix(path, end)
	}
	for _, s := range stores {
		if id := segmentAfter(path, s); id != "" {
			rt.api, rt.kind, rt.responseID = Responses, NoWork, id
		}
	}
	return rt
}

// nameAfter returns the beginning of the path segment that follows the last
// occurrence of marker, as a copy that does not hold on to the whole path.
func nameAfter(path, marker string) string {
	name := segmentAfter(path, marker)
	return strings.Clone(name[:min(len(name), maxName)])
}

// segmentAfter returns the path segment that follows the last occurrence of marker.
func segmentAfter(path, marker string) string {
	i := strings.LastIndex(path, marker)
	if i < 0 {
		return ""
	}
	segment, _, _ := strings.Cut(path[i+len(marker):], "/")
	return segment
}
