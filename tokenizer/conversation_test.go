package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// turn is a message of an abstract conversation, written by each API in its own way.
type turn struct {
	Role  string // system, user, assistant, tool
	Text  string
	Image string // base64, of a user
	Think string // reasoning, of an assistant
	Calls []call // of an assistant
}

type call struct{ Name, Path string }

func drawText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringN(0, 20, -1),
		rapid.SampledFrom([]string{"", "M", "user", "\xff", "\"", "\\", "<think>", "{}", "a\x00b"}),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("abcdé\n", n/6) }),
	)
}

func drawTurn(t *rapid.T, role string) turn {
	m := turn{Role: role, Text: drawText().Draw(t, "text")}
	switch role {
	case "user":
		m.Image = rapid.SampledFrom([]string{"", "", "iVBO/w==", "R0lG"}).Draw(t, "image")
	case "assistant":
		m.Think = rapid.SampledFrom([]string{"", "I see."}).Draw(t, "reasoning")
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m.Calls = append(m.Calls, call{"read", drawText().Draw(t, "path")})
		}
	}
	return m
}

// drawTurns draws a conversation that an assistant is to answer.
func drawTurns(t *rapid.T, most int) []turn {
	role := rapid.SampledFrom([]string{"system", "user", "assistant", "tool"})
	var turns []turn
	for range rapid.IntRange(0, most).Draw(t, "turns") {
		turns = append(turns, drawTurn(t, role.Draw(t, "role")))
	}
	return append(turns, drawTurn(t, rapid.SampledFrom([]string{"user", "tool"}).Draw(t, "last")))
}

func chatBody(turns []turn) any {
	messages := []any{}
	for _, m := range turns {
		msg := object{"role": m.Role, "content": m.Text}
		if m.Image != "" {
			msg["content"] = []any{object{"type": "text", "text": m.Text},
				object{"type": "image_url", "image_url": object{"url": "data:image/png;base64," + m.Image}}}
		}
		if m.Think != "" {
			msg["reasoning_content"] = m.Think
		}
		var calls []any
		for i, c := range m.Calls {
			args := string(encode(object{"path": c.Path}))
			calls = append(calls, object{"id": strconv.Itoa(i), "type": "function", "function": object{"name": c.Name, "arguments": args}})
		}
		if calls != nil {
			msg["tool_calls"] = calls
		}
		messages = append(messages, msg)
	}
	return object{"model": "m", "messages": messages}
}

func messagesBodyOf(turns []turn) any {
	messages := []any{}
	for _, m := range turns {
		parts := []any{}
		if m.Think != "" {
			parts = append(parts, object{"type": "thinking", "thinking": m.Think, "signature": "s"})
		}
		parts = append(parts, object{"type": "text", "text": m.Text})
		if m.Image != "" {
			parts = append(parts, object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": m.Image}})
		}
		for i, c := range m.Calls {
			parts = append(parts, object{"type": "tool_use", "id": strconv.Itoa(i), "name": c.Name, "input": object{"path": c.Path}})
		}
		role := m.Role
		if role == "tool" {
			role, parts = "user", []any{object{"type": "tool_result", "tool_use_id": "0", "content": m.Text}}
		}
		messages = append(messages, object{"role": role, "content": parts})
	}
	return object{"model": "m", "max_tokens": 5, "messages": messages}
}

func responsesBodyOf(turns []turn) any {
	items := []any{}
	for _, m := range turns {
		if m.Role == "tool" {
			items = append(items, object{"type": "function_call_output", "call_id": "0", "output": m.Text})
			continue
		}
		if m.Think != "" {
			items = append(items, object{"type": "reasoning", "summary": []any{}})
		}
		parts := []any{object{"type": "input_text", "text": m.Text}}
		if m.Image != "" {
			parts = append(parts, object{"type": "input_image", "image_url": "data:image/png;base64," + m.Image})
		}
		items = append(items, object{"type": "message", "role": m.Role, "content": parts})
		for _, c := range m.Calls {
			items = append(items, object{"type": "function_call", "call_id": "0", "name": c.Name, "arguments": string(encode(object{"path": c.Path}))})
		}
	}
	return object{"model": "m", "input": items}
}

// writers are the APIs in which a conversation can be held.
var writers = map[string]func([]turn) any{
	chatPath: chatBody, "/api/chat": chatBody, messagesPath: messagesBodyOf, responsesPath: responsesBodyOf,
}

func parseAny(t *rapid.T, path string, body []byte) *Prompt {
	var p Prompt
	if err := Parse(post(path, string(body)), &p); err != nil {
		t.Fatalf("parsing %s: %v", body, err)
	}
	return &p
}

func TestNextTurnContinuesChain(t *testing.T) {
	for path, write := range writers {
		t.Run(path, rapid.MakeCheck(func(t *rapid.T) {
			turns := drawTurns(t, rapid.SampledFrom([]int{3, 40, 300}).Draw(t, "most"))
			next := append(slices.Clone(turns), drawTurn(t, "assistant"), drawTurn(t, "user"))
			a, b := parseAny(t, path, encode(write(turns))), parseAny(t, path, encode(write(next)))
			if n := shared(a, b); n < len(a.Blocks) {
				t.Fatalf("the next turn's chain leaves the former at block %d of %d", n, len(a.Blocks))
			}
		}))
	}
}

func TestSameConversationSameChain(t *testing.T) {
	for path, write := range writers {
		t.Run(path, rapid.MakeCheck(func(t *rapid.T) {
			body := write(drawTurns(t, 5))
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			a, b := parseAny(t, path, encode(body)), parseAny(t, path, shake(nil, rng, normal(body)))
			if !slices.Equal(a.Blocks, b.Blocks) {
				t.Fatalf("another way to write %s has another chain", encode(body))
			}
		}))
	}
}

func TestOtherConversationOtherChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := map[uint64]string{}
		for range 30 {
			turns := drawTurns(t, 2)
			for i := range turns { // what does not count
				turns[i].Think = ""
				turns[i].Text = strings.ToValidUTF8(turns[i].Text, "\uFFFD")
			}
			k, conversation := last(parseAny(t, chatPath, encode(chatBody(turns)))), fmt.Sprintf("%q", turns)
			if other, ok := seen[k]; ok && other != conversation {
				t.Fatalf("one chain for\n%s\n%s", other, conversation)
			}
			seen[k] = conversation
		}
	})
}

// normal makes plain maps and slices of a body.
func normal(v any) (out any) {
	if err := json.Unmarshal(encode(v), &out); err != nil {
		panic(err)
	}
	return out
}

// shake writes a value as some other client might: keys in any order, some of them
// twice, white space, escapes.
func shake(dst []byte, rng *rand.Rand, v any) []byte {
	dst = space(dst, rng)
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			if i > 0 {
				dst = append(space(dst, rng), ',')
			}
			if rng.IntN(4) == 0 {
				dst = append(space(shakeString(dst, rng, name), rng), `:[{"junk":null}],`...)
			}
			dst = append(space(shakeString(space(dst, rng), rng, name), rng), ':')
			if name == "input" && v["type"] == "tool_use" {
				dst = append(dst, encode(v[name])...) // here every key counts, in its order
				continue
			}
			dst = shake(dst, rng, v[name])
		}
		dst = append(space(dst, rng), '}')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(space(dst, rng), ',')
			}
			dst = shake(dst, rng, e)
		}
		dst = append(space(dst, rng), ']')
	case string:
		dst = shakeString(dst, rng, v)
	default:
		dst = append(dst, encode(v)...)
	}
	return space(dst, rng)
}

func space(dst []byte, rng *rand.Rand) []byte {
	for rng.IntN(3) == 0 {
		dst = append(dst, " \t\r\n"[rng.IntN(4)])
	}
	return dst
}

func shakeString(dst []byte, rng *rand.Rand, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case rng.IntN(8) == 0 && r > 0xffff:
			a, b := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04X`, a, b)
		case rng.IntN(8) == 0 && r <= 0xffff || r < 0x20 || r == '"' || r == '\\':
			dst = fmt.Appendf(dst, `\u%04x`, r)
		case r == '/' && rng.IntN(2) == 0:
			dst = append(dst, `\/`...)
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}

func TestAllocationsDoNotGrow(t *testing.T) {
	for name, body := range map[string]string{
		"messages": `{"model":"m","messages":[{"role":"user","content":"a"}` +
			strings.Repeat(`,{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"c\n"}]}`, 5000) + `]}`,
		"escapes": `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`\u6570\u636e,`, 500_000) + `"}]}`,
		"tokens":  `{"prompt":[1` + strings.Repeat(`,2345`, 500_000) + `]}`,
	} {
		in := post(chatPath, body)
		var p Prompt
		// A few come when the pool has been emptied and memory grows anew.
		if n := testing.AllocsPerRun(20, func() { _ = Parse(in, &p) }); n > 50 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
