package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func TestRecognition(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct {
		path, body string
		api        API
		kind       Kind
	}{
		{"/v1/chat/completions", `{` + hi + `}`, Chat, Generate},
		{"/llm/v1/chat/completions/", `{` + hi + `}`, Chat, Generate},
		{"/openai/deployments/x/chat/completions", `{` + hi + `}`, Chat, Generate},
		{"/v1/chat/completions/render", `{` + hi + `}`, Chat, NoWork},
		{"/v1/chat/completions/input_tokens", `{` + hi + `}`, Chat, NoWork},
		{"/apply-template", `{` + hi + `}`, Chat, NoWork},
		{"/tokenize", `{"prompt":"a"}`, Completions, NoWork},
		{"/v1/tokenize", `{` + hi + `}`, Chat, NoWork},
		{"/tokenize", `{"content":"a"}`, NativeGenerate, NoWork},
		{"/v1/encode", `{"input":"a"}`, Embeddings, NoWork},
		{"/api/chat", `{` + hi + `}`, OllamaChat, Generate},
		{"/api/generate", `{"prompt":"a"}`, OllamaGenerate, Generate},
		{"/api/embed", `{"input":"a"}`, Embeddings, Embed},
		{"/api/embeddings", `{"prompt":"a"}`, Completions, Embed},
		{"/v1/embeddings", `{` + hi + `}`, Chat, Embed},
		{"/embedding", `{"content":"a"}`, NativeGenerate, Embed},
		{"/embed", `{"inputs":["a"]}`, NativeGenerate, Embed},
		{"/classify", `{"input":"a"}`, Embeddings, Embed},
		{"/v1/score", `{"text_1":"a","text_2":"b"}`, Pairs, Embed},
		{"/v2/rerank", `{"query":"a","documents":["b"]}`, Pairs, Embed},
		{"/completion", `{"prompt":"a"}`, Completions, Generate},
		{"/infill", `{"input_prefix":"a","input_suffix":"b"}`, Infill, Generate},
		{"/generate", `{"text":"a"}`, NativeGenerate, Generate},
		{"/generate", `{` + hi + `}`, Chat, Generate},
		{"/generate_stream", `{"inputs":"a"}`, NativeGenerate, Generate},
		{"/inference/v1/generate", `{"token_ids":[1,2]}`, NativeGenerate, Generate},
		{"/v2/models/m/generate", `{"text_input":"a"}`, NativeGenerate, Generate},

		{"/invocations", `{` + hi + `}`, Chat, Generate},
		{"/x", `{"system":"s",` + hi + `}`, Messages, Generate},
		{"/x", `{"prompt":"a"}`, Completions, Generate},
		{"/x", `{"prompt":"a","system":"b"}`, OllamaGenerate, Generate},
		{"/x", `{"input":"a"}`, Embeddings, Embed},
		{"/x", `{"input":"a","instructions":"b"}`, Responses, Generate},
		{"/x", `{"input":[{"role":"user","content":"a"}]}`, Responses, Generate},
		{"/x", `{"input":[{"text":"a"}]}`, Embeddings, Embed},
		{"/v1/messages/", `{` + hi + `}`, Messages, Generate},
		{"/v1/responses/compact", `{"input":"a"}`, Responses, Generate},
		{"/x", `{"query":"a","documents":["b"]}`, Pairs, Embed},
		{"/", `{"inputs":"a"}`, NativeGenerate, Generate},
		{"/x", `{"input_ids":[1,2]}`, NativeGenerate, Generate},
	} {
		var p Prompt
		if err := Parse(post(tt.path, tt.body), &p); err != nil || p.API != tt.api || p.Kind != tt.kind {
			t.Errorf("%s %s: %v %v, %v", tt.path, tt.body, p.API, p.Kind, err)
		}
		if (p.Kind == NoWork) != (len(p.Blocks) == 0) {
			t.Errorf("%s %s: %d blocks", tt.path, tt.body, len(p.Blocks))
		}
	}
}

// Paths say what a body is for that shows nothing itself, or something else.
func TestPathsAreKnown(t *testing.T) {
	for _, path := range []string{
		"/v1/chat/completions", "/api/chat/completions", "/v1/messages", "/anthropic/v1/messages/", "/v1/responses", "/v1/completions",
		"/completions", "/completion", "/api/chat", "/api/generate", "/infill", "/generate", "/generate_stream",
		"/v1/embeddings", "/embedding", "/v2/embed", "/embed_all", "/pooling", "/v1/classify", "/rerank", "/v1/rerank", "/reranking", "/v1/score",
		"/v1/audio/speech", "/v1/images/generations", "/v1/images/edits", "/v1/videos", "/v1/moderations",
	} {
		var p Prompt
		if err := Parse(post("/llm"+path, `{"model":"m"}`), &p); err != NoPrompt {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{
		"/v1/messages/count_tokens", "/v1/chat/completions/render", "/v1/chat/completions/input_tokens", "/v1/completions/render",
		"/v1/responses/input_tokens", "/apply-template", "/tokenize", "/v1/tokenize", "/chat_tokenize", "/detokenize", "/v1/encode", "/api/show",
	} {
		p := parse(t, "/llm"+path, `{"model":"m","input":"a","messages":[{"content":"a"}]}`)
		if p.Kind != NoWork || len(p.Blocks) > 0 || p.Model != "m" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestModelOfPath(t *testing.T) {
	for path, want := range map[string]string{
		"/openai/deployments/gpt%2/chat/completions": "gpt%2",
		"/v2/models/m/versions/1/generate":           "m",
		"/v1/chat/completions":                       "",
	} {
		if p := parse(t, path, `{"messages":[{"content":"a"}]}`); p.Model != want {
			t.Errorf("%s: model %q", path, p.Model)
		}
	}
	if p := parse(t, "/deployments/x/chat/completions", `{"model":"m","messages":[{"content":"a"}]}`); p.Model != "m" {
		t.Errorf("the body's model counts for more: %q", p.Model)
	}
}

// size is what a prompt amounts to: text and tokens of the chain and beyond it.
type size struct{ bytes, tokens, extraBytes, extraTokens int }

func sizeOf(p *Prompt) size {
	end := Block{}
	if n := len(p.Blocks); n > 0 {
		end = p.Blocks[n-1]
	}
	return size{int(end.Bytes), int(end.Tokens), p.ExtraBytes, p.ExtraTokens}
}

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		path, body string
		want       size
	}{
		{"/v1/completions", `{"prompt":"abcd"}`, size{4, 0, 0, 0}},
		{"/v1/completions", `{"prompt":"abcd","suffix":"xy"}`, size{6, 0, 0, 0}},
		{"/v1/completions", `{"prompt":["abcd","ef","g"]}`, size{4, 0, 3, 0}},
		{"/v1/completions", `{"prompt":[1,2,30000]}`, size{0, 3, 0, 0}},
		{"/v1/completions", `{"prompt_embeds":"AAAA"}`, size{0, fileTokens, 0, 0}},
		{"/completion", `{"prompt":"abc","image_data":[{"id":1,"data":"AAAA"}]}`, size{3, imageTokens, 0, 0}},
		{"/v1/completions", `{"prompt":[[1,2,3],[4,5],[6]]}`, size{0, 3, 0, 3}},
		{"/completion", `{"prompt":[1,2,"abc",3]}`, size{3, 3, 0, 0}},
		{"/completion", `{"prompt":{"prompt_string":"abc","multimodal_data":["AAAA"]}}`, size{3, imageTokens, 0, 0}},
		{"/v1/embeddings", `{"input":["abc","d"]}`, size{3, 0, 1, 0}},
		{"/v1/embeddings", `{"input":[1,2]}`, size{0, 2, 0, 0}},
		{"/v1/rerank", `{"query":"abc","documents":["de","f",{"text":"ghij"}]}`, size{5, 0, 3 + 1 + 3 + 4, 0}},
		{"/v2/embed", `{"texts":["abc","d"]}`, size{3, 0, 1, 0}},
		{"/score", `{"text_1":"abc","text_2":"d"}`, size{4, 0, 0, 0}},
		{"/score", `{"data_1":"abc","data_2":["d","ef"]}`, size{4, 0, 5, 0}},
		{"/score", `{"queries":["abc"],"items":["d","ef"]}`, size{4, 0, 5, 0}},
		{"/v1/score", `{"query":"abc","items":[[1,2],[3]]}`, size{3, 2, 3, 1}},
		{"/score", `{"queries":["abc","de"],"items":["f","g"]}`, size{4, 0, 4, 0}},
		{"/rerank", `{"query":"abc","texts":["d"]}`, size{4, 0, 0, 0}},
		{"/score", `{"data_1":{"content":[{"type":"image_url","image_url":{"url":"https://x/1"}}]},"data_2":"d"}`, size{1, imageTokens, 0, 0}},
		{"/generate", `{"text":["a","bc"]}`, size{1, 0, 2, 0}},
		{"/generate", `{"input_ids":[1,2,3],"image_data":"x"}`, size{0, 3 + imageTokens, 0, 0}},
		{"/generate", `{"text":"abc","audio_data":"x","video_data":["y"]}`, size{3, audioTokens + videoTokens, 0, 0}},
		{"/v1/messages", `{"messages":[{"content":[{"type":"document","source":{"type":"text","data":"abc"}}]}]}`, size{3, messageTokens, 0, 0}},
		{"/v1/messages", `{"messages":[{"content":[{"type":"document","source":{"type":"base64","data":"AAAA"}}]}]}`, size{0, messageTokens + fileTokens, 0, 0}},
		{"/v1/messages", `{"messages":[{"content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"abc"},{"type":"image","source":{"data":"AAAA"}}]}}]}]}`,
			size{3, messageTokens + imageTokens, 0, 0}},
		{"/v1/chat/completions", `{"messages":[{"content":[{"image":"AAAA"},{"text":"abc"}]}]}`, size{3, messageTokens + imageTokens, 0, 0}},
		{"/v1/chat/completions", `{"messages":[{"content":[{"type":"x","text":"abc"}]}]}`, size{len(`{"type":"x","text":"abc",}`), messageTokens, 0, 0}},
		{"/v1/chat/completions", `{"messages":[{"content":[{"type":"x","image":"AAAA"}]}]}`, size{len(`{"type":"x","image":"AAAA",}`), messageTokens, 0, 0}},
		{"/v1/chat/completions", `{"messages":[{"content":[{}, 5]}]}`, size{3, messageTokens, 0, 0}},
		{"/v1/chat/completions", `{"messages":[{"content":"abc"}],"tools":[{"type":"function","name":"de","description":"f","parameters":{}}]}`, size{8, messageTokens, 0, 0}},
		{"/v1/responses", `{"input":["abc"]}`, size{3, messageTokens, 0, 0}},
		{"/v1/responses", `{"input":[{"type":"function_call","name":"f","arguments":"{}"},{"type":"function_call_output","output":"ab"}]}`, size{5, 2 * messageTokens, 0, 0}},
		{"/v1/responses", `{"input":[{"type":"mcp_call","name":"f","arguments":"{}","output":"ab"}]}`, size{5, 2 * messageTokens, 0, 0}},
		{"/v1/responses", `{"input":[{"type":"x","y":1}]}`, size{len(`{"type":"x","y":1,}`), messageTokens, 0, 0}},
		{"/infill", `{"input_extra":[{"filename":"f","text":"abc"}],"input_prefix":"de","prompt":"f","input_suffix":"g"}`, size{8, 0, 0, 0}},
		{"/api/generate", `{"system":"ab","prompt":"c","images":["AA"]}`, size{3, 2*messageTokens + imageTokens, 0, 0}},
		{"/api/generate", `{"system":"ab","prompt":"c","raw":true}`, size{1, 0, 0, 0}},
		{"/api/generate", `{"prompt":"c","suffix":"de","images":["AA"],"raw":true}`, size{3, imageTokens, 0, 0}},
		{"/api/generate", `{"prompt":"c","suffix":"de"}`, size{3, messageTokens, 0, 0}},
		{"/api/generate", `{"prompt":"c","context":[1,2,3]}`, size{1, 3 + messageTokens, 0, 0}},
	} {
		if got := sizeOf(parse(t, tt.path, tt.body)); got != tt.want {
			t.Errorf("%s %s: got %+v, want %+v", tt.path, tt.body, got, tt.want)
		}
	}
}

func TestSamplingParameters(t *testing.T) {
	for _, tt := range []struct {
		path, body      string
		stream          bool
		tokens, choices int
		adapter         string
	}{
		{"/v1/completions", `{"prompt":"a","max_tokens":5,"n":2,"best_of":4,"stream":false}`, false, 5, 4, ""},
		{"/v1/completions", `{"prompt":"a","max_tokens":"7","n":"2","stream":"true"}`, true, 7, 2, ""},
		{"/v1/completions", `{"prompt":"a","max_tokens":null,"n":0}`, false, 0, 1, ""},
		{"/v1/completions", `{"prompt":"a","max_tokens":-1}`, false, 0, 1, ""},
		{"/v1/completions", `{"prompt":"a","max_tokens":99999999999999999999}`, false, 1<<31 - 1, 1, ""},
		{"/completion", `{"prompt":"a","n_predict":9}`, false, 9, 1, ""},
		{"/generate", `{"text":"a","max_new_tokens":6,"adapter_id":"l"}`, false, 6, 1, "l"},
		{"/api/chat", `{"messages":[{"content":"a"}],"options":{"num_predict":3}}`, true, 3, 1, ""},
		{"/api/chat", `{"messages":[{"content":"a"}],"stream":false}`, false, 0, 1, ""},
		{"/api/generate", `{"prompt":"a","stream":null}`, true, 0, 1, ""},
		{"/generate", `{"text":"a","sampling_params":{"max_new_tokens":4,"n":3},"lora_path":"l"}`, false, 4, 3, "l"},
		{"/generate", `{"text":"a","lora_path":["l","m"]}`, false, 0, 1, "l"},
		{"/generate", `{"inputs":"a","parameters":{"max_new_tokens":4,"adapter_id":"l"}}`, false, 4, 1, "l"},
		{"/generate", `{"inputs":"a","parameters":{"max_tokens":4,"best_of":3}}`, false, 4, 3, ""},
		{"/generate", `{"text":"a","lora_path":"` + strings.Repeat("l", 1000) + `"}`, false, 0, 1, strings.Repeat("l", maxName)},
		{"/generate_stream", `{"inputs":"a"}`, true, 0, 1, ""},
	} {
		p := parse(t, tt.path, tt.body)
		if p.Stream != tt.stream || p.MaxTokens != tt.tokens || p.Choices != tt.choices || p.Adapter != tt.adapter {
			t.Errorf("%s %s: %v %d %d %q", tt.path, tt.body, p.Stream, p.MaxTokens, p.Choices, p.Adapter)
		}
	}
}

func TestOllamaEqualsChat(t *testing.T) {
	chat := parse(t, chatPath, `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"p"}]}`)
	for path, body := range map[string]string{
		"/api/chat":     `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"p"}],"options":{"num_ctx":4096}}`,
		"/api/generate": `{"model":"m","system":"s","prompt":"p"}`,
	} {
		if p := parse(t, path, body); !slices.Equal(p.Blocks, chat.Blocks) {
			t.Errorf("%s: the chain differs from that of the same chat", path)
		}
	}
	assertDistinct(t, "/api/generate", `{"prompt":"p"}`, `{"prompt":"p","system":"s"}`, `{"prompt":"p","raw":true}`,
		`{"prompt":"p","template":"{{.Prompt}}"}`, `{"prompt":"p","think":true}`, `{"prompt":"p","context":[1]}`, `{"prompt":"p","images":["AAAA"]}`)
}

func TestThinkingInTextIsDropped(t *testing.T) {
	wrap := func(content string) string {
		return `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"` + content + `"},{"role":"user","content":"r"}]}`
	}
	assertSame(t, chatPath, wrap(`answer`), wrap(`<think>\nhm\n</think>\n\nanswer`), wrap(`\u003cthink\u003ehm\u003c/think\u003eanswer`),
		wrap(`hm<\/think>answer`))
	assertSame(t, chatPath, wrap(``), wrap(`<think>hm</think>`))
	assertSame(t, chatPath, `{"messages":[{"role":"assistant","content":"a"}]}`, `{"messages":[{"role":"assistant","content":"<think>hm</think>a"}]}`)
	assertDistinct(t, chatPath, wrap(`answer`), wrap(`</thinks>answer`), wrap(`<think>answer`), wrap(`a/think>answer`))
	assertDistinct(t, chatPath, `{"messages":[{"role":"user","content":"a</think>b"}]}`, `{"messages":[{"role":"user","content":"b"}]}`)
}
