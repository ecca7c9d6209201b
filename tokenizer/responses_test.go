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
		strings.Replace(responsesBody, `Be brief`, `Be long`, 1),
		strings.Replace(responsesBody, `"Thanks"`, `[{"type":"input_image","image_url":"https://x/1"}]`, 1),
		strings.Replace(responsesBody, `"Thanks"`, `[{"type":"input_file","file_id":"f1"}]`, 1),
		strings.Replace(responsesBody, `{"role":"user","content":"Thanks"}`, `{"type":"item_reference","id":"i1"}`, 1),
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
