package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestChainIsMonotonous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := drawTurns(t, 300)
		text := 0
		for i := range turns {
			turns[i].Image, turns[i].Think, turns[i].Calls = "", "", nil
			turns[i].Text = strings.ToValidUTF8(turns[i].Text, "")
			text += len(turns[i].Text)
		}
		p := parseAny(t, chatPath, encode(chatBody(turns)))
		end := p.Blocks[len(p.Blocks)-1]
		if got := int(end.Bytes) + p.ExtraBytes; got != text {
			t.Errorf("%d bytes of text counted as %d", text, got)
		}
		if got := int(end.Tokens) + p.ExtraTokens; got != len(turns)*messageTokens {
			t.Errorf("%d messages counted as %d tokens", len(turns), got)
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
