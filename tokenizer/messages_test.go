package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

const messagesPath = "/anthropic/v1/messages"

// messagesBody is a turn of a coding agent.
const messagesBody = `{
	"model": "qwen3-coder", "max_tokens": 32000, "stream": true,
	"metadata": {"user_id": "user_1_session_2"}, "thinking": {"type": "enabled", "budget_tokens": 1000},
	"system": [{"type": "text", "text": "You are an agent."}, {"type": "text", "text": "Be careful with what others wrote, and ask before you write.", "cache_control": {"type": "ephemeral"}}],
	"tools": [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}, "cache_control": {"type": "ephemeral"}},
		{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
	"messages": [
		{"role": "user", "content": "What does a.go do?"},
		{"role": "assistant", "content": [{"type": "thinking", "thinking": "I read it.", "signature": "x"}, {"type": "text", "text": "I look."},
			{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.go"}}]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "package a"}]}, {"type": "text", "text": "Go on."}, {"type": "text", "text": "Then stop."}]},
		{"role": "assistant", "content": "I do what you say, and say what I do, and do it again until you are content."},
		{"role": "user", "content": [{"type": "text", "text": "Here is what you have been asking me for, at long last, and in full."}, {"type": "tool_result", "content": "42"}]}
	]}`

func TestMessagesFields(t *testing.T) {
	p := parse(t, messagesPath, messagesBody)
	if p.API != Messages || p.Kind != Generate || p.Model != "qwen3-coder" || !p.Stream || p.MaxTokens != 32000 {
		t.Errorf("got %+v", p)
	}
	if len(p.Hints) != 1 {
		t.Errorf("hints %v, want that of metadata.user_id", p.Hints)
	}
	if other := parse(t, messagesPath, strings.Replace(messagesBody, "session_2", "session_22", 1)); slices.Equal(p.Hints, other.Hints) {
		t.Error("different users have one hint")
	} else if shared(p, other) != len(p.Blocks) {
		t.Error("the user's id changes the chain")
	}
}

func TestMessagesSameConversation(t *testing.T) {
	assertSame(t, messagesPath, messagesBody,
		strings.NewReplacer("\n", "", "\t", "", ": ", ":").Replace(messagesBody),
		strings.ReplaceAll(messagesBody, `, "cache_control": {"type": "ephemeral"}`, ``),
		strings.Replace(messagesBody, `{"type": "thinking", "thinking": "I read it.", "signature": "x"}, `, ``, 1),
		strings.Replace(messagesBody, `"content": "What does a.go do?"`, `"content": [{"text": "What does a.go do?", "cache_control": null, "type": "text"}]`, 1),
		strings.Replace(messagesBody, `"content": [{"type": "text", "text": "package a"}]`, `"content": "package a"`, 1),
	)
	// A client's attribution, which engines drop from the system prompt.
	assertSame(t, messagesPath,
		`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"}]}`,
		`{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.37.0d9; cch=fa690;"},{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"}]}`,
		`{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.37.1a2; cch=0b1c2;"},{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"}]}`)
	assertSame(t, messagesPath,
		`{"system":"s","messages":[{"role":"user","content":"a"}]}`,
		`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"}]}`)
}

func TestMessagesDistinct(t *testing.T) {
	assertDistinct(t, messagesPath, messagesBody,
		strings.Replace(messagesBody, "You are", "you are", 1),
		strings.Replace(messagesBody, "Reads a", "reads a", 1),
		strings.Replace(messagesBody, `"max_uses": 5`, `"max_uses": 6`, 1),
		strings.Replace(messagesBody, `{"path": "a.go"}`, `{"path": "b.go"}`, 1),
		strings.Replace(messagesBody, "package a", "package b", 1),
		strings.Replace(messagesBody, "Go on.", "Stop.", 1),
		strings.Replace(messagesBody, `"stream": true`, `"output_config": {"effort": "high"}`, 1),
		strings.Replace(messagesBody, `"stream": true`, `"output_config": {"effort": "low"}`, 1),
		`{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"a"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"AAAA"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/1"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/2"}}]}]}`,
	)
}

// TestMessagesEqualChat compares with what engines turn the request into.
func TestMessagesEqualChat(t *testing.T) {
	a := parse(t, messagesPath, messagesBody)
	b := parse(t, chatPath, `{"model":"qwen3-coder","messages":[
		{"role":"system","content":[{"type":"text","text":"You are an agent."},{"type":"text","text":"Be careful with what others wrote, and ask before you write."}]},
		{"role":"user","content":"What does a.go do?"},
		{"role":"assistant","content":"I look.","reasoning_content":"I read it.","tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.go\"}"}}]},
		{"role":"tool","tool_call_id":"t1","content":"package a"},
		{"role":"user","content":[{"type":"text","text":"Go on."},{"type":"text","text":"Then stop."}]},
		{"role":"assistant","content":"I do what you say, and say what I do, and do it again until you are content."},
		{"role":"user","content":"Here is what you have been asking me for, at long last, and in full."},
		{"role":"tool","content":"42"}],
		"tools":[{"type":"function","function":{"name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}},
			{"type":"web_search_20250305","name":"web_search","max_uses":5}]}`)
	if !slices.Equal(a.Blocks, b.Blocks) {
		t.Error("chains differ")
	}
}

func TestCountTokensWarmsNothing(t *testing.T) {
	p := parse(t, "/v1/messages/count_tokens", messagesBody)
	if p.Kind != NoWork || len(p.Blocks) != 0 || p.Model != "qwen3-coder" {
		t.Errorf("got %+v", p)
	}
}
