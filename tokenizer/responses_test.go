package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

const responsesPath = "/v1/responses"

const responsesBody = `{"model":"gpt-oss-120b","instructions":"Be brief.","max_output_tokens":500,"prompt_cache_key":"k","reasoning":{"effort":"low"},
	"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true}],
	"input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},
		{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"},
		{"type":"function_call_output","call_id":"c1","output":"42"},
		{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"It is 42.","annotations":[]}]},
		{"role":"user","content":"Thanks"}]}`

func TestResponsesFields(t *testing.T) {
	p := parse(t, responsesPath, responsesBody)
	if p.API != Responses || p.Kind != Generate || p.MaxTokens != 500 || p.HasResponseID || len(p.Hints) != 1 {
		t.Errorf("got %+v", p)
	}
}

func TestResponsesSameConversation(t *testing.T) {
	assertSame(t, responsesPath, responsesBody,
		strings.Replace(responsesBody, `{"type":"reasoning","id":"rs_1","summary":[]},`, ``, 1),
		strings.Replace(responsesBody, `[{"type":"input_text","text":"Hi"}]`, `"Hi"`, 1),
		strings.Replace(responsesBody, `[{"type":"output_text","text":"It is 42.","annotations":[]}]`, `"It is 42."`, 1),
		strings.Replace(responsesBody, `"reasoning":{"effort":"low"}`, `"reasoning_effort":"low"`, 1))
	assertSame(t, responsesPath, `{"model":"m","input":"Hi"}`,
		`{"model":"m","input":[{"role":"user","content":"Hi"}],"instructions":null}`,
		`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}],"tools":[]}`)
	a := parse(t, responsesPath, `{"model":"m","instructions":"s","input":"Hi"}`)
	b := parse(t, chatPath, `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"Hi"}]}`)
	if !slices.Equal(a.Blocks, b.Blocks) {
		t.Error("the chain differs from that of the same chat")
	}
}

func TestResponsesDistinct(t *testing.T) {
	assertDistinct(t, responsesPath, responsesBody,
		strings.Replace(responsesBody, `"low"`, `"high"`, 1),
		strings.Replace(responsesBody, `"output":"42"`, `"output":"43"`, 1),
		strings.Replace(responsesBody, `"name":"f","arguments"`, `"name":"g","arguments"`, 1),
		strings.Replace(responsesBody, `"arguments":"{}"`, `"arguments":"{\"a\":1}"`, 1),
		strings.Replace(responsesBody, `"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"`, `"custom_tool_call","name":"f","input":"a"`, 1),
		strings.Replace(responsesBody, `"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"`, `"custom_tool_call","name":"f","input":"b"`, 1),
		strings.Replace(responsesBody, `"description":"d"`, `"description":"e"`, 1),
		strings.Replace(responsesBody, `Be brief`, `Be long`, 1),
		strings.Replace(responsesBody, `"Thanks"`, `[{"type":"input_image","image_url":"https://x/1"}]`, 1),
		strings.Replace(responsesBody, `"Thanks"`, `[{"type":"input_file","file_id":"f1"}]`, 1),
		strings.Replace(responsesBody, `{"role":"user","content":"Thanks"}`, `{"type":"item_reference","id":"i1"}`, 1),
		strings.Replace(responsesBody, `{"role":"user","content":"Thanks"}`, `{"type":"item_reference","id":"i2"}`, 1),
		strings.Replace(responsesBody, `{"role":"user","content":"Thanks"}`, `{"type":"web_search_call","action":{"query":"a"}}`, 1),
		strings.Replace(responsesBody, `{"role":"user","content":"Thanks"}`, `{"type":"web_search_call","action":{"query":"b"}}`, 1),
		strings.Replace(responsesBody, `{"role":"user","content":"Thanks"}`, `{"type":"mcp_call","name":"f","arguments":"{}","output":"a"}`, 1),
		strings.Replace(responsesBody, `{"role":"user","content":"Thanks"}`, `{"type":"mcp_call","name":"f","arguments":"{}","output":"b"}`, 1),
	)
}

func TestResponsesContinue(t *testing.T) {
	for _, tt := range []struct{ field, id string }{
		{`"previous_response_id":"resp_1"`, "resp_1"}, {`"conversation":"conv_1"`, "conv_1"}, {`"conversation":{"id":"conv_1"}`, "conv_1"},
	} {
		p := parse(t, responsesPath, `{"model":"m","instructions":"abc",`+tt.field+`,"input":"twelve bytes"}`)
		if !p.HasResponseID || p.ResponseID != ResponseKey(testSecret, "", tt.id) {
			t.Errorf("%s: no response id", tt.field)
		}
		end := p.Blocks[len(p.Blocks)-1]
		if end.Bytes != 3 || p.ExtraBytes != 12 {
			t.Errorf("%s: chain of %d bytes and %d extra", tt.field, end.Bytes, p.ExtraBytes)
		}
	}
	if p := parse(t, responsesPath, `{"model":"m","previous_response_id":"r","input":"hi"}`); len(p.Blocks) != 0 || p.ExtraBytes != 2 {
		t.Errorf("got %+v", p)
	}
}

func TestResponsesRetrieval(t *testing.T) {
	for _, tt := range []struct{ method, path, id string }{
		{"GET", "/v1/responses/resp_1", "resp_1"},
		{"DELETE", "/llm/v1/responses/resp_1/", "resp_1"},
		{"POST", "/v1/responses/resp_1/cancel", "resp_1"},
		{"GET", "/v1/responses/resp_1/input_items", "resp_1"},
		{"GET", "/v1/conversations/conv_1/items", "conv_1"},
	} {
		p := Prompt{Model: "left over"}
		if err := Parse(&Input{Method: tt.method, Path: tt.path, Secret: testSecret, Tenant: "t"}, &p); err != nil {
			t.Errorf("%s: %v", tt.path, err)
		}
		if p.Kind != NoWork || !p.HasResponseID || p.ResponseID != ResponseKey(testSecret, "t", tt.id) || p.Model != "" {
			t.Errorf("%s: %+v", tt.path, p)
		}
	}
}

// A hint is one of a tenant, a model and a use.
func TestHints(t *testing.T) {
	const chat = `{"model":"m","messages":[{"content":"a"}],`
	seen := map[uint64]string{}
	for _, tt := range []struct{ path, body string }{
		{chatPath, chat + `"prompt_cache_key":"k"}`},
		{chatPath, chat + `"prompt_cache_key":"l"}`},
		{chatPath, chat + `"model":"n","prompt_cache_key":"k"}`},
		{chatPath, chat + `"session_params":{"id":"k"}}`},
		{messagesPath, chat + `"metadata":{"user_id":"k"}}`},
	} {
		p := parse(t, tt.path, tt.body)
		if len(p.Hints) != 1 {
			t.Fatalf("%s: hints %v", tt.body, p.Hints)
		}
		if other, ok := seen[p.Hints[0]]; ok {
			t.Errorf("one hint for\n%s\n%s", other, tt.body)
		}
		seen[p.Hints[0]] = tt.body
	}
	a, b := parse(t, chatPath, chat+`"session_params":{"id":"k"}}`), parse(t, chatPath, chat+`"session_params":{"session_id":"k"}}`)
	if !slices.Equal(a.Hints, b.Hints) {
		t.Error("the two names of a session's id give different hints")
	}
	if p := parse(t, chatPath, chat+`"metadata":{"user_id":"k"},"session_params":{},"prompt_cache_key":7}`); len(p.Hints) > 0 {
		t.Errorf("hints %v of nothing", p.Hints)
	}
}

// What has no text may still say what it belongs to.
func TestHintsWithoutText(t *testing.T) {
	var p Prompt
	err := Parse(&Input{
		Method: "POST", Path: responsesPath, Secret: testSecret,
		Body: []byte(`{"model":"m","prompt_cache_key":"k"}`),
	}, &p)
	if want := Hint(testSecret, "", "m", "k"); err != NoPrompt || !slices.Equal(p.Hints, []uint64{want}) {
		t.Errorf("hints %v, %v; want %v", p.Hints, err, want)
	}
	_ = Parse(&Input{Method: "POST", Path: "/v1/images/generations", Body: []byte(`{"prompt":"a","prompt_cache_key":"k"}`)}, &p)
	if len(p.Hints) > 0 {
		t.Error("a request without a KV cache has hints")
	}
}
