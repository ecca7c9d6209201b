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

// What a request leaves in the pool is little, and nothing of the caller's.
func TestReadersKeepLittle(t *testing.T) {
	r := newReader(post(chatPath, "{}"), new(Prompt))
	r.tape = make([]node, 0, maxPooledNodes+1)
	r.unescape, r.scratch = make([]byte, 0, maxPooledBytes+1), make([]byte, 0, maxPooledBytes+1)
	r.body, r.blocks = r.in.Body, make([]Block, 1)
	r.release()
	if r.in != nil || r.p != nil || r.body != nil || r.blocks != nil || r.tape != nil || r.unescape != nil || r.scratch != nil {
		t.Error("something is kept")
	}
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

// What many requests share ends a block, so that they share it whatever follows.
func TestSharedBeginningsAreFound(t *testing.T) {
	text := strings.Repeat("x", 200)
	for _, tt := range []struct{ path, body string }{
		{chatPath, `{"tools":[{"function":{"name":"f","description":"` + text + `","parameters":{}}}],"messages":[{"role":"user","content":"%s"}]}`},
		{chatPath, `{"messages":[{"role":"system","content":"` + text + `"},{"role":"user","content":"%s"}]}`},
		{messagesPath, `{"system":"` + text + `","messages":[{"role":"user","content":"%s"}]}`},
		{responsesPath, `{"instructions":"` + text + `","input":"%s"}`},
		{"/api/generate", `{"system":"` + text + `","prompt":"%s"}`},
		{"/infill", `{"input_extra":[{"filename":"f","text":"` + text + `"}],"input_prefix":"%s"}`},
	} {
		a, b := parse(t, tt.path, fmt.Sprintf(tt.body, "one")), parse(t, tt.path, fmt.Sprintf(tt.body, "another"))
		if n := shared(a, b); n == 0 || int(a.Blocks[n-1].Bytes) < len(text) {
			t.Errorf("%s %s: %d blocks are shared", tt.path, tt.body, n)
		}
	}
}

// Only what lies in an answer counts as one, through every API.
func TestRepliesEnd(t *testing.T) {
	long := func(c string) string { return `"` + strings.Repeat(c, 1200) + `"` }
	for _, tt := range []struct{ path, body string }{
		{chatPath, `{"messages":[{"role":"user","content":%q},{"role":"assistant","content":%a},{"role":"user","content":%q}]}`},
		{chatPath, `{"messages":[%q,{"role":"model","content":%a},%q]}`},
		{messagesPath, `{"system":%q,"messages":[{"role":"assistant","content":[{"type":"text","text":%a}]},{"role":"user","content":[{"type":"tool_result","content":%q}]}]}`},
		{responsesPath, `{"input":[{"role":"user","content":%q},{"role":"assistant","content":%a},{"type":"function_call_output","output":%q}]}`},
		{responsesPath, `{"instructions":%q,"input":[{"type":"function_call","name":%a},{"type":"function_call_output","output":%q}]}`},
		{responsesPath, `{"input":[{"role":"user","content":%q},{"type":"mcp_call","name":%a,"output":%q}]}`},
		{responsesPath, `{"input":[{"role":"user","content":%q},{"type":"x","y":%a},{"role":"user","content":%q}]}`},
		{"/api/chat", `{"messages":[{"role":"user","content":%q},{"role":"assistant","content":%a},{"role":"tool","content":%q}]}`},
	} {
		p := parse(t, tt.path, strings.NewReplacer("%q", long("q"), "%a", long("a")).Replace(tt.body))
		begin := uint32(0)
		for _, b := range p.Blocks {
			if inside := begin >= 1200 && b.Bytes <= 2400+20; b.Reply != inside { // some JSON is around one of them
				t.Errorf("%s: bytes %d to %d of %s are called a reply: %v", tt.path, begin, b.Bytes, tt.body, b.Reply)
			}
			begin = b.Bytes
		}
	}
}

// Tools alone are worth to be matched, when that is all that is read of a body.
func TestTruncatedAfterTools(t *testing.T) {
	tools := `{"model":"m","tools":[{"name":"f","parameters":{"a":"` + strings.Repeat("x", 2000) + `"}}`
	in := post(chatPath, tools+`,{"name":`)
	in.Truncated = true
	var part Prompt
	if err := Parse(in, &part); err != nil {
		t.Fatal(err)
	}
	if whole := parse(t, chatPath, tools+`],"messages":[{"content":"a"}]}`); shared(whole, &part) < 3 {
		t.Errorf("%d of %d blocks are shared", shared(whole, &part), len(part.Blocks))
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
