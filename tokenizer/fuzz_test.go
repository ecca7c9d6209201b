package tokenizer

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/internal/measure"
)

// fuzzPath fuzzes the bodies that one path takes: nothing panics, hangs or takes memory
// out of proportion, counts grow along the chain, and white space changes nothing.
func fuzzPath(f *testing.F, path string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s), false)
		f.Add([]byte(s[:len(s)*2/3]), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, truncated bool) {
		in := post(path, string(body))
		in.Truncated = truncated
		var p Prompt
		var err error
		measure.Bounded(t, mostMemory(body), func() { err = Parse(in, &p) })
		checkPrompt(t, &p, err, len(body))
		var spaced bytes.Buffer
		if truncated || json.Indent(&spaced, body, " ", "\t") != nil {
			return
		}
		var q Prompt
		in.Body = spaced.Bytes()
		if other := Parse(in, &q); other != err {
			t.Fatalf("%v, with white space %v", err, other)
		}
		if !slices.Equal(p.Blocks, q.Blocks) || p.ExtraBytes != q.ExtraBytes || p.ExtraTokens != q.ExtraTokens {
			t.Fatalf("white space changes the chain of %s", body)
		}
	})
}

// mostMemory is what reading a body may allocate when nothing can be reused: the tape
// takes 16 bytes for a value of two, and a third more for having grown.
func mostMemory(body []byte) uint64 { return 64<<10 + 32*uint64(len(body)) }

func checkPrompt(t *testing.T, p *Prompt, err error, size int) {
	if err != nil {
		if _, ok := err.(Reason); !ok || len(p.Blocks) > 0 || p.Kind != Unknown {
			t.Fatalf("error %v with %+v", err, p)
		}
		return
	}
	last := Block{}
	for _, b := range p.Blocks {
		if b.Bytes < last.Bytes || b.Tokens < last.Tokens || int(b.Bytes) > 4*size+1024 ||
			b.Further < last.Further || b.Further-last.Further > b.Bytes-last.Bytes {
			t.Fatalf("block %+v follows %+v in a body of %d bytes", b, last, size)
		}
		last = b
	}
	if p.ExtraBytes < 0 || p.ExtraFurther < 0 || p.ExtraFurther > p.ExtraBytes || p.ExtraTokens < 0 || p.Choices < 1 || p.MaxTokens < 0 || len(p.Model) > maxName {
		t.Fatalf("out of range: %+v", p)
	}
}

func FuzzChat(f *testing.F) {
	fuzzPath(f, chatPath, string(benchChat(3000)),
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},`+
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\": 1}"}}]},`+
			`{"role":"tool","tool_call_id":"1","content":"42"}],"functions":[{"name":"f","parameters":{}}],"documents":[{"a":1}],"n":2}`)
}

func FuzzCompletions(f *testing.F) {
	fuzzPath(f, "/v1/completions", `{"model":"m","prompt":["a","b"],"suffix":"c"}`, `{"prompt":[[1,2],[3]]}`,
		`{"prompt":[1,2,"x",3],"n_predict":5}`, `{"prompt":{"prompt_string":"a","multimodal_data":["AAAA"]}}`)
}

func FuzzResponses(f *testing.F) { fuzzPath(f, "/v1/responses", responsesBody) }

func FuzzMessages(f *testing.F) { fuzzPath(f, "/v1/messages", messagesBody) }

func FuzzOllama(f *testing.F) {
	fuzzPath(f, "/api/generate", `{"model":"llama3","system":"s","prompt":"p","images":["AAAA"],"context":[1,2,3],"options":{"num_predict":5}}`)
}

func FuzzInfill(f *testing.F) {
	fuzzPath(f, "/infill", `{"input_extra":[{"filename":"a.go","text":"x"}],"input_prefix":"p","prompt":"q","input_suffix":"s"}`)
}

func FuzzGenerate(f *testing.F) {
	fuzzPath(f, "/generate", `{"text":["a","b"],"sampling_params":{"max_new_tokens":5,"n":2}}`, `{"inputs":"a","parameters":{"adapter_id":"l"}}`,
		`{"input_ids":[[1,2],[3]],"image_data":["x"]}`)
}

func FuzzEmbeddings(f *testing.F) {
	fuzzPath(f, "/v1/embeddings", `{"model":"e","input":["a","b",[1,2]]}`)
}

func FuzzPairs(f *testing.F) {
	fuzzPath(f, "/v1/rerank", `{"query":"q","documents":["a",{"text":"b"}]}`, `{"text_1":["a"],"text_2":["b","c"]}`)
}

func FuzzUnknownPath(f *testing.F) {
	fuzzPath(f, "/x", `{"messages":[{"role":"user","content":"a"}],"system":"s"}`, `{"input":[{"role":"user","content":"a"}]}`, `{"prompt":"a"}`)
}

func FuzzPath(f *testing.F) {
	for _, path := range []string{"/v1/chat/completions", "/openai/deployments/x/chat/completions", "/v1/responses/r/cancel", "//", ""} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		var p Prompt
		err := Parse(post(path, `{"model":"m","messages":[{"content":"a"}]}`), &p)
		checkPrompt(t, &p, err, 100)
	})
}
