package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// turns draws a conversation that ends where an assistant answers, and its continuation:
// an answer and what ends the next turn.
func turns(t *rapid.T) (prompt, continued []any) {
	text := rapid.OneOf(rapid.StringN(0, 20, -1),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("abcdé\n", n/6) }))
	role := rapid.SampledFrom([]string{"system", "user", "tool", "developer", "assistant"})
	draw := func(role, label string) object {
		return object{"role": role, "content": text.Draw(t, label)}
	}
	for range rapid.IntRange(0, rapid.SampledFrom([]int{3, 40, 300}).Draw(t, "most")).Draw(t, "messages") {
		prompt = append(prompt, draw(role.Draw(t, "role"), "text"))
	}
	prompt = append(prompt, draw("user", "question"))
	answer := draw("assistant", "answer")
	if rapid.Bool().Draw(t, "calls") {
		answer["reasoning_content"] = text.Draw(t, "reasoning")
		answer["tool_calls"] = []any{object{"id": "1", "type": "function", "function": object{"name": "f", "arguments": `{"a":1}`}}}
	}
	continued = append(slices.Clone(prompt), answer, draw(rapid.SampledFrom([]string{"user", "tool"}).Draw(t, "next"), "text"))
	return prompt, continued
}

func TestChainOfNextTurnContinues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := turns(t)
		var a, b Prompt
		if err := Parse(post(chatPath, string(encode(object{"messages": before}))), &a); err != nil {
			t.Fatal(err)
		}
		if err := Parse(post(chatPath, string(encode(object{"messages": after}))), &b); err != nil {
			t.Fatal(err)
		}
		if len(b.Blocks) < len(a.Blocks) {
			t.Fatalf("%d blocks after %d", len(b.Blocks), len(a.Blocks))
		}
		if got := b.Blocks[:len(a.Blocks)]; !slices.Equal(got, a.Blocks) {
			t.Fatalf("the next turn's chain leaves the former at block %d of %d", shared(&a, &b), len(a.Blocks))
		}
	})
}

func TestChainIsMonotonous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, _ := turns(t)
		var p Prompt
		if err := Parse(post(chatPath, string(encode(object{"messages": before}))), &p); err != nil {
			t.Fatal(err)
		}
		text := 0
		for _, m := range before {
			text += len(m.(object)["content"].(string))
		}
		end := p.Blocks[len(p.Blocks)-1]
		if got := int(end.Bytes) + p.ExtraBytes; got != text {
			t.Errorf("%d bytes of text counted as %d", text, got)
		}
		if got := int(end.Tokens) + p.ExtraTokens; got != len(before)*messageTokens {
			t.Errorf("%d messages counted as %d tokens", len(before), got)
		}
		for i := 1; i < len(p.Blocks); i++ {
			a, b := p.Blocks[i-1], p.Blocks[i]
			if b.Bytes < a.Bytes || b.Tokens < a.Tokens || a.Key == b.Key {
				t.Errorf("block %+v follows %+v", b, a)
			}
		}
	})
}

func TestChainBudget(t *testing.T) {
	body := func(messages, size int) string {
		var list []any
		for i := range messages {
			role := []string{"user", "assistant"}[i%2]
			list = append(list, object{"role": role, "content": strings.Repeat("x", size)})
		}
		return string(encode(object{"messages": list}))
	}
	for _, tt := range []struct{ messages, size, most int }{
		{1, 100, 1},
		{5, 32 << 10 / 5, 60},
		{20, 512 << 10 / 20, 150},
		{1000, 512, 500},
		{5000, 100, 500},
		{20000, 1, 500},
		{100000, 1, 700},
		{3, 4 << 20 / 3, 200},
	} {
		t.Run(fmt.Sprintf("%dx%d", tt.messages, tt.size), func(t *testing.T) {
			if n := len(parse(t, chatPath, body(tt.messages, tt.size)).Blocks); n > tt.most {
				t.Errorf("%d keys, want at most %d", n, tt.most)
			}
		})
	}
}

func TestReplyBlocks(t *testing.T) {
	system, answer := strings.Repeat("s", 700), strings.Repeat("a", 700)
	p := parse(t, chatPath, string(encode(object{"messages": []any{
		object{"role": "system", "content": system}, object{"role": "user", "content": "q"},
		object{"role": "assistant", "content": answer}, object{"role": "user", "content": "q2"}}})))
	var got []string
	for _, b := range p.Blocks {
		got = append(got, fmt.Sprint(b.Bytes, b.Reply))
	}
	// The system prompt fills a block and ends one, the question ends one, likewise the answer.
	want := []string{"486 false", "700 false", "701 false", "1184 true", "1401 true", "1403 false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTruncatedChainIsPrefix(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	body := `{"model":"m","messages":[{"role":"system","content":` + string(encode(prose(rng, 3000))) +
		`},{"role":"user","content":` + string(encode(prose(rng, 3000))) + `}]}`
	whole := parse(t, chatPath, body)
	for range 300 {
		in := post(chatPath, body[:rng.IntN(len(body))])
		in.Truncated = true
		var part Prompt
		if err := Parse(in, &part); err != nil && err != NoPrompt && err != NoBody && err != UnknownAPI {
			t.Fatal(err)
		}
		// What follows the last full block ends where the body was cut.
		if n := shared(whole, &part); n < len(part.Blocks)-1 {
			t.Fatalf("text cut at %d: %d of %d blocks are a prefix", len(in.Body), n, len(part.Blocks))
		}
		if len(in.Body) > 0 && !part.Truncated {
			t.Fatal("not marked as truncated")
		}
	}
}
