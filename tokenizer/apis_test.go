package tokenizer

import (
	"slices"
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
		{"/v1/completions", `{"prompt":[[1,2,3],[4,5],[6]]}`, size{0, 3, 0, 3}},
		{"/completion", `{"prompt":[1,2,"abc",3]}`, size{3, 3, 0, 0}},
		{"/completion", `{"prompt":{"prompt_string":"abc","multimodal_data":["AAAA"]}}`, size{3, imageTokens, 0, 0}},
		{"/v1/embeddings", `{"input":["abc","d"]}`, size{3, 0, 1, 0}},
		{"/v1/embeddings", `{"input":[1,2]}`, size{0, 2, 0, 0}},
		{"/v1/rerank", `{"query":"abc","documents":["de","f",{"text":"ghij"}]}`, size{5, 0, 3 + 1 + 3 + 4, 0}},
		{"/score", `{"text_1":"abc","text_2":"d"}`, size{4, 0, 0, 0}},
		{"/generate", `{"text":["a","bc"]}`, size{1, 0, 2, 0}},
		{"/generate", `{"input_ids":[1,2,3],"image_data":"x"}`, size{0, 3 + imageTokens, 0, 0}},
		{"/infill", `{"input_extra":[{"filename":"f","text":"abc"}],"input_prefix":"de","prompt":"f","input_suffix":"g"}`, size{8, 0, 0, 0}},
		{"/api/generate", `{"system":"ab","prompt":"c","images":["AA"]}`, size{3, 2*messageTokens + imageTokens, 0, 0}},
		{"/api/generate", `{"system":"ab","prompt":"c","raw":true}`, size{1, 0, 0, 0}},
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
		{"/api/chat", `{"messages":[{"content":"a"}],"options":{"num_predict":3}}`, true, 3, 1, ""},
		{"/api/chat", `{"messages":[{"content":"a"}],"stream":false}`, false, 0, 1, ""},
		{"/api/generate", `{"prompt":"a","stream":null}`, true, 0, 1, ""},
		{"/generate", `{"text":"a","sampling_params":{"max_new_tokens":4,"n":3},"lora_path":"l"}`, false, 4, 3, "l"},
		{"/generate", `{"text":"a","lora_path":["l","m"]}`, false, 0, 1, "l"},
		{"/generate", `{"inputs":"a","parameters":{"max_new_tokens":4,"adapter_id":"l"}}`, false, 4, 1, "l"},
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
	assertDistinct(t, chatPath, wrap(`answer`), wrap(`</thinks>answer`), wrap(`<think>answer`), wrap(`a/think>answer`))
	assertDistinct(t, chatPath, `{"messages":[{"role":"user","content":"a</think>b"}]}`, `{"messages":[{"role":"user","content":"b"}]}`)
}
