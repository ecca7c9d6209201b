package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

const chatPath = "/v1/chat/completions"

func TestChatFields(t *testing.T) {
	p := parse(t, chatPath, `{
		"messages": [{"role":"system","content":"Be brief."},{"role":"user","content":"Héllo"}],
		"model": "meta-llama\/Llama-3.1-8B", "stream": true, "max_completion_tokens": 128, "n": 3,
		"lora_path": "sql", "prompt_cache_key": "k1"}`)
	if p.API != Chat || p.Kind != Generate || p.Model != "meta-llama/Llama-3.1-8B" || p.Adapter != "sql" {
		t.Errorf("got %v %v %q %q", p.API, p.Kind, p.Model, p.Adapter)
	}
	if !p.Stream || p.MaxTokens != 128 || p.Choices != 3 || p.Truncated || p.HasResponseID {
		t.Errorf("got %+v", p)
	}
	if want := Hint(testSecret, "", p.Model, "k1"); !slices.Equal(p.Hints, []uint64{want}) {
		t.Errorf("hints %v, want %v", p.Hints, want)
	}
	end := p.Blocks[len(p.Blocks)-1]
	if end.Bytes != uint32(len("Be brief.Héllo")) || end.Tokens != 2*messageTokens {
		t.Errorf("prompt of %d bytes and %d tokens", end.Bytes, end.Tokens)
	}
}

func TestChatSameConversation(t *testing.T) {
	assertSame(t, chatPath,
		`{"model":"m","messages":[{"role":"user","content":"caf\u00e9 \ud83d\ude00 a/b"}]}`,
		`{"messages":[{"content":"café 😀 a\/b","role":"user"}],"model":"m"}`,
		"{\n \"model\" : \"m\",\t\"messages\":[ { \"role\":\"user\" ,\r\n\"content\":[{\"type\":\"text\",\"text\":\"café 😀 a/b\"}] } ] }\n",
		`{"model":"m","messages":[{"role":"user","content":[{"text":"café 😀 a/b","type":"text","cache_control":{"type":"ephemeral"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":{"type":"text","text":"café 😀 a/b"}}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"text":"café 😀 a/b"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":["café 😀 a/b"]}]}`,
		`{"m\u006fdel":"m","messages":[{"role":"\u0075ser","content":"café 😀 a/b"}],"temperature":0.1,"stream":true,"user":"u","metadata":{"a":"b"},"seed":1}`,
		`{"model":"m","messages":[{"role":"user","content":"café 😀 a/b"}],"tools":null,"functions":[],"response_format":{"type":"json_schema","json_schema":{}}}`,
		`{"model":"m","messages":[{"role":"tool"}],"messages":[{"role":"x","role":"user","content":1,"content":"café 😀 a/b"}]}`,
		"\xef\xbb\xbf"+`{"model":"m","messages":[{"role":"user","content":"café 😀 a/b"}]}`,
	)
}

func TestChatSameTools(t *testing.T) {
	wrap := func(tool string) string {
		return `{"messages":[{"role":"user","content":"hi"}],"tools":[` + tool + `]}`
	}
	assertSame(t, chatPath,
		wrap(`{"type":"function","function":{"name":"t","description":"d","parameters":{"a":1,"b":2}}}`),
		wrap(`{"function":{"parameters":{ "a" : 1, "b" : 2 },"description":"\u0064","name":"t"}}`),
		wrap(`{"type":"function","function":{"name":"t","description":"d","parameters":{"a":1,"b":2},"strict":false,"x":null}}`),
		wrap(`{"name":"t","description":"d","input_schema":{"a":1,"b":2},"cache_control":{"type":"ephemeral"}}`),
		wrap(`{"type":"function","name":"t","description":"d","parameters":{"a":1,"b":2}}`))
	assertSame(t, chatPath,
		wrap(`{"name":"t","parameters":{"a":"\u00e9 \"\/ \n","\u00e9":[ ]}}`),
		wrap(`{"name":"t","parameters":{"a" : "é \u0022/ \u000a" , "é":[]}}`))
	assertDistinct(t, chatPath,
		wrap(`{"name":"t","parameters":{"a":"b c"}}`), wrap(`{"name":"t","parameters":{"a":"bc"}}`),
		wrap(`{"name":"t","parameters":{"a":"b","c":"d"}}`), wrap(`{"name":"t","parameters":{"a":"b\",\"c\":\"d"}}`))
}

func TestChatSameEmptyContent(t *testing.T) {
	wrap := func(content string) string {
		return `{"messages":[{"role":"user","content":"hi"},{"role":"assistant"` + content +
			`,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": [1, 2]}"}}]}]}`
	}
	assertSame(t, chatPath, wrap(``), wrap(`,"content":null`), wrap(`,"content":""`), wrap(`,"content":[]`),
		wrap(`,"content":[{"type":"text","text":""}]`), wrap(`,"reasoning_content":"hm","reasoning":"hm"`),
		wrap(`,"content":[{"type":"thinking","thinking":"hm"}]`), wrap(`,"refusal":null,"audio":null`),
		wrap(`,"content":[{"type":"redacted_thinking","data":"x"}]`), wrap(`,"content":[{"type":"reasoning","text":"hm"}]`),
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"function":{"arguments":{"a":[1,2]},"name":"f"}}]}]}`,
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"arguments":" {\"a\":[1,2]}","name":"f"}]}]}`,
	)
}

func TestChatDistinct(t *testing.T) {
	assertDistinct(t, chatPath,
		`{"model":"m","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"n","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","lora_path":"l","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","cache_salt":"s","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","extra_key":"s","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","cache_salt":"s","extra_key":"s","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","chat_template_kwargs":{"enable_thinking":false},"messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","reasoning_effort":"low","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"system","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"developer","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","name":"bob","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"ab"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":"{}"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":"{\"x\":1}"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":"oops"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":"o ops"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":"{\"c"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":"{\"d"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"bo","arguments":"ops"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"b","arguments":""}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":5}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"5"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{}}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","description":"d","parameters":{}}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"a":1,"b":2}}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"b":2,"a":1}}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"functions":[{"name":"u","parameters":{}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{},"strict":true}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{},"returns":{}, "x":1}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{},"x":2}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"t","parameters":{},"y":2}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"lora_request":{"lora_name":"l"}}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x/1.png"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x/2.png"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/1.png"}},{"type":"text","text":"a"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"sticker","id":7}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","uuid":"1"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":null,"uuid":"2"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"documents":[{"title":"d"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","refusal":"b"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","refusal":"c"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"refusal","refusal":"c"},{"type":"text","text":"d"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"refusal","refusal":"e"},{"type":"text","text":"d"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","function_call":{"name":"c","arguments":"{}"}}]}`,
		`{"model":"m","messages":[{"role":"tool","tool_name":"x","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"tool","tool_name":"y","content":"a"}]}`,
		`{"model":"m","messages":["a"]}`,
		`{"model":"m","messages":["b"]}`,
		`{"model":"m","messages":[{"role":"user","name":1,"content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","name":2,"content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","content":5}]}`,
		`{"model":"m","messages":[{"role":"user","content":"5"}]}`,
		`{"model":"m","messages":[{}]}`,
		`{"model":"m","messages":[null,{"role":"user","content":"a"}]}`,
	)
}

func TestTenantsShareNothing(t *testing.T) {
	in := post(chatPath, `{"model":"m","prompt_cache_key":"k","messages":[{"role":"user","content":"a"}]}`)
	var a, b Prompt
	in.Tenant = "a"
	if err := Parse(in, &a); err != nil {
		t.Fatal(err)
	}
	in.Tenant = "b"
	if err := Parse(in, &b); err != nil {
		t.Fatal(err)
	}
	if shared(&a, &b) != 0 || a.Hints[0] == b.Hints[0] {
		t.Error("tenants share keys")
	}
	in.Tenant, in.Secret = "a", 7
	if err := Parse(in, &b); err != nil {
		t.Fatal(err)
	}
	if shared(&a, &b) != 0 || a.Hints[0] == b.Hints[0] {
		t.Error("keys do not depend on the secret")
	}
}

func TestChatImagesByContent(t *testing.T) {
	assertSame(t, chatPath,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO/+A=","detail":"high"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image\/png;base64,iVBO\/+A="}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/jpeg;base64,iVBO/+A="}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO/+A="}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"input_image","file_id":"f","image_url":"data:image/png;base64,iVBO/+A="}]}]}`,
		`{"messages":[{"role":"user","content":[{"image_url":"data:image/png;base64,iVBO/+A=","file_id":"f","type":"input_image"}]}]}`,
		`{"messages":[{"role":"user","images":["iVBO/+A="]}]}`,
	)
	p := parse(t, chatPath, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]}]}`)
	if b := p.Blocks[len(p.Blocks)-1]; b.Bytes != 0 || b.Tokens != messageTokens+imageTokens {
		t.Errorf("an image counts as %d bytes and %d tokens", b.Bytes, b.Tokens)
	}
}

// Media of all kinds counts by its content and not as text.
func TestMedia(t *testing.T) {
	for _, tt := range []struct {
		part   string
		tokens int
	}{
		{`{"type":"image_url","image_url":{"url":"%s"}}`, imageTokens},
		{`{"type":"image_url","image_url":"%s","file_id":""}`, imageTokens},
		{`{"type":"image","image":"%s"}`, imageTokens},
		{`{"type":"image","source":{"type":"base64","data":"%s"}}`, imageTokens},
		{`{"type":"input_image","file_id":"%s","image_url":null}`, imageTokens},
		{`{"type":"audio_url","audio_url":{"url":"%s"}}`, audioTokens},
		{`{"type":"audio","audio":{"id":"%s"}}`, audioTokens},
		{`{"type":"input_audio","input_audio":{"data":"%s","format":"wav"}}`, audioTokens},
		{`{"type":"video_url","video_url":{"url":"%s"}}`, videoTokens},
		{`{"type":"video","video":["%s"]}`, videoTokens},
		{`{"type":"input_video","video_url":"%s"}`, videoTokens},
		{`{"type":"file","file":{"file_data":"%s","filename":"a"}}`, fileTokens},
		{`{"type":"file","file":{"file_id":"%s"}}`, fileTokens},
		{`{"type":"input_file","file_url":"%s"}`, fileTokens},
		{`{"type":"input_file","file_data":"%s","file_id":"x"}`, fileTokens},
	} {
		wrap := func(content string) string {
			return `{"messages":[{"role":"user","content":[` + strings.Replace(tt.part, "%s", content, 1) + `]}]}`
		}
		a, b := parse(t, chatPath, wrap("AAAA")), parse(t, chatPath, wrap("BBBB"))
		if got, want := sizeOf(a), (size{0, messageTokens + tt.tokens, 0, 0}); got != want {
			t.Errorf("%s: got %+v, want %+v", tt.part, got, want)
		}
		if last(a) == last(b) {
			t.Errorf("%s: the content does not count", tt.part)
		}
	}
}

func TestReasons(t *testing.T) {
	for _, tt := range []struct {
		name, path, body string
		want             Reason
	}{
		{"empty", chatPath, "", NoBody},
		{"blank", chatPath, " \n", NoBody},
		{"array", chatPath, "[1]", NotJSON},
		{"text", chatPath, "hello", NotJSON},
		{"broken", chatPath, `{"messages":[}`, Malformed},
		{"short", chatPath, `{"messages":[{"role":"user"`, Malformed},
		{"no messages", chatPath, `{"model":"m"}`, NoPrompt},
		{"empty messages", chatPath, `{"model":"m","messages":[]}`, NoPrompt},
		{"only a hint", chatPath, `{"model":"m","messages":[],"prompt_cache_key":"k"}`, NoPrompt},
		{"only tools", chatPath, `{"model":"m","tools":[{"function":{"name":"f","parameters":{}}}]}`, NoPrompt},
		{"speech", "/v1/audio/speech", `{"model":"m","input":"hello"}`, NoPrompt},
		{"picture", "/v1/images/generations", `{"model":"m","prompt":"hello"}`, NoPrompt},
		{"unknown", "/x", `{"model":"m"}`, UnknownAPI},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Prompt{Model: "left over", Adapter: "left over"}
			if err := Parse(post(tt.path, tt.body), &p); err != tt.want {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if p.Model == "left over" || p.Adapter == "left over" {
				t.Errorf("of an earlier request: %+v", p)
			}
			if err := Parse(&Input{Method: "GET", Path: tt.path, Body: []byte(tt.body)}, &p); err != NoBody {
				t.Errorf("GET: %v", err)
			}
			if len(p.Blocks) != 0 || p.Kind != Unknown {
				t.Errorf("blocks or kind remain: %+v", p)
			}
		})
	}
	var p Prompt
	in := post("/v1/audio/transcriptions", "--x\r\n")
	in.ContentType = "Multipart/Form-Data; boundary=x"
	if err := Parse(in, &p); err != NotJSON {
		t.Errorf("multipart: %v", err)
	}
}

// TestInvalidUTF8 checks that bytes which are no text cannot pass for structure.
func TestInvalidUTF8(t *testing.T) {
	assertDistinct(t, chatPath,
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\xffMuser\xfftb\"}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\xfftb\"}]}",
		"{\"messages\":[{\"role\":\"user\xffta\"}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\xc3\"}]}",
	)
}
