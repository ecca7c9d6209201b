package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/internal/measure"
)

// sizes of benchmark bodies, about.
var benchSizes = []struct {
	name  string
	bytes int
}{{"2KB", 2 << 10}, {"32KB", 32 << 10}, {"400KB", 400 << 10}, {"4MB", 4 << 20}}

// prose returns n bytes of text in which every tenth line is code and every eighth word
// is not ASCII.
func prose(rng *rand.Rand, n int) string {
	words := []string{"cache", "prefix", "größe", "replica", "the", "of", "数据", "engine", "tokens", "request", "and", "émis"}
	var b strings.Builder
	for b.Len() < n {
		if rng.IntN(10) == 0 {
			fmt.Fprintf(&b, "\tif x := f(%q, %d); x != nil {\n", words[rng.IntN(len(words))], rng.IntN(1000))
		}
		for range 10 {
			b.WriteString(words[rng.IntN(len(words))])
			b.WriteByte(' ')
		}
		b.WriteByte('\n')
	}
	return b.String()[:n]
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type object = map[string]any

func benchTools(rng *rand.Rand, n int) []any {
	var tools []any
	for i := range n {
		tools = append(tools, object{"type": "function", "function": object{
			"name": fmt.Sprintf("tool_%d", i), "description": prose(rng, 300),
			"parameters": object{"type": "object", "required": []string{"path"}, "properties": object{
				"path":  object{"type": "string", "description": prose(rng, 80)},
				"limit": object{"type": "integer", "minimum": 0, "maximum": 100},
			}},
		}})
	}
	return tools
}

func benchChat(size int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	tools := benchTools(rng, min(size/8000, 20))
	messages := []any{object{"role": "system", "content": prose(rng, min(size/4, 6000))}}
	for left := size - len(encode(messages)) - len(encode(tools)); left > 0; {
		n := min(left, 200+rng.IntN(4000))
		messages = append(messages,
			object{"role": "user", "content": []any{object{"type": "text", "text": prose(rng, n/2)}}},
			object{"role": "assistant", "content": prose(rng, n/2)})
		left -= n + 80
	}
	return encode(object{"model": "meta-llama/Llama-3.1-8B-Instruct", "messages": messages, "tools": tools, "stream": true, "temperature": 0.7})
}

func benchCompletions(size int) []byte {
	rng := rand.New(rand.NewPCG(2, uint64(size)))
	return encode(object{"model": "base", "prompt": prose(rng, size), "max_tokens": 100})
}

func benchTokens(size int) []byte {
	rng := rand.New(rand.NewPCG(3, uint64(size)))
	ids := make([]int, size/6)
	for i := range ids {
		ids[i] = rng.IntN(120000)
	}
	return encode(object{"model": "base", "prompt": ids, "max_tokens": 100})
}

func benchTiny(size int) []byte {
	var messages []any
	for i := range size / 60 {
		messages = append(messages, object{"role": []string{"user", "assistant"}[i%2], "content": "all right then"})
	}
	return encode(object{"model": "m", "messages": messages})
}

// benchEscapes is a chat whose text is mostly escapes, as some clients send all that is
// not ASCII.
func benchEscapes(size int) []byte {
	text := strings.Repeat(`\u6570\u636e\uff0c \"\u00e9mis\"\n`, size/4/35)
	message := `{"role":"user","content":"` + text + `"}`
	return []byte(`{"model":"m","messages":[` + strings.Repeat(message+",", 3) + message + `]}`)
}

// benchConversation is an agent's: calls, results and reasoning.
func benchConversation(write func([]turn) any) func(int) []byte {
	return func(size int) []byte {
		rng := rand.New(rand.NewPCG(4, uint64(size)))
		turns := []turn{{Role: "user", Text: prose(rng, 500)}}
		for left := size - 600; left > 0; left -= 3000 {
			n := min(left, 2000)
			turns = append(turns, turn{Role: "assistant", Text: prose(rng, n/10), Think: prose(rng, n/4), Calls: []call{{"read", "/src/a.go"}}},
				turn{Role: "tool", Text: prose(rng, n)})
		}
		return encode(write(turns))
	}
}

func benchInput(size int) []byte {
	rng := rand.New(rand.NewPCG(5, uint64(size)))
	var texts []string
	for left := size; left > 0; left -= 1000 {
		texts = append(texts, prose(rng, min(left, 1000)))
	}
	return encode(object{"model": "e", "input": texts})
}

// BenchmarkPrompt reports MB/s by the clock, and by the CPU time used, which counts on
// a machine that others use too.
func BenchmarkPrompt(b *testing.B) {
	for _, a := range []struct {
		name, path string
		body       func(int) []byte
	}{
		{"chat", chatPath, benchChat},
		{"chat-tiny", chatPath, benchTiny},
		{"chat-escapes", chatPath, benchEscapes},
		{"chat-agent", chatPath, benchConversation(chatBody)},
		{"messages", messagesPath, benchConversation(messagesBodyOf)},
		{"responses", responsesPath, benchConversation(responsesBodyOf)},
		{"completions", "/v1/completions", benchCompletions},
		{"tokens", "/v1/completions", benchTokens},
		{"embeddings", "/v1/embeddings", benchInput},
	} {
		for _, size := range benchSizes {
			b.Run(a.name+"/"+size.name, func(b *testing.B) {
				in := post(a.path, string(a.body(size.bytes)))
				var p Prompt
				b.SetBytes(int64(len(in.Body)))
				b.ReportAllocs()
				before := measure.CPU()
				for b.Loop() {
					if err := Parse(in, &p); err != nil {
						b.Fatal(err)
					}
				}
				used := measure.CPU() - before
				b.ReportMetric(float64(b.N*len(in.Body))/1e6/used.Seconds(), "cpu-MB/s")
				b.ReportMetric(float64(len(p.Blocks)), "keys")
			})
		}
	}
}

// BenchmarkHostile measures bodies made to cost much.
func BenchmarkHostile(b *testing.B) {
	const size = 8 << 20
	fill := func(unit string) []byte { return []byte(`{"messages":[` + strings.Repeat(unit, size/len(unit))) }
	for name, body := range map[string][]byte{
		"objects":  fill(`{},`),
		"messages": fill(`{"role":"assistant","content":"x"},`),
		"deep":     fill(`[`),
		"numbers":  fill(`[1,"",1],`),
		"escapes":  []byte(`{"messages":[{"content":"` + strings.Repeat(`\n`, size/2)),
		"unicode":  []byte(`{"messages":[{"content":"` + strings.Repeat(`\ud83d`, size/6)),
		"quotes":   []byte(`{"messages":[{"content":"` + strings.Repeat(`\"`, size/2)),
		"thinking": []byte(`{"messages":[{"role":"assistant","content":"` + strings.Repeat(`/think`, size/6)),
		"keys":     []byte(`{` + strings.Repeat(`"model":1,`, size/10)),
		"marks":    []byte(`{"messages":[{"content":"` + strings.Repeat("\xff", size)),
		"json":     []byte(`{"messages":[{"content":[{"type":"x","y":` + strings.Repeat(`{"a":`, size/5)),
	} {
		b.Run(name, func(b *testing.B) {
			in := post(chatPath, string(body))
			in.Truncated = true
			b.SetBytes(int64(len(in.Body)))
			b.ReportAllocs()
			for b.Loop() {
				var p Prompt
				_ = Parse(in, &p)
			}
		})
	}
}
