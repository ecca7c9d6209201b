package module

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// longStream is an answer of 500 tokens, as vLLM streams it.
func longStream() []byte {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-23affc1d-7f50-562d-af6f-d016e4d5115b","object":"chat.completion.chunk","created":1795971597,`+
			`"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", i)
	}
	b.WriteString(usageEvent + doneEvent)
	return []byte(b.String())
}

// longAnswer is a JSON text of about size bytes whose content is long.
func longAnswer(size int) []byte {
	text := strings.Repeat(`The quick brown fox said \"no\"\n`, size/33)
	return []byte(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"}}],"usage":{"prompt_tokens":9}}`)
}

// manyNumbers is an embeddings answer.
func manyNumbers(n int) []byte {
	text := strings.TrimSuffix(strings.Repeat("-0.01234567,", n), ",")
	return []byte(`{"object":"list","data":[{"object":"embedding","embedding":[` + text + `]}],"usage":{"prompt_tokens":9}}`)
}

func BenchmarkResponseScanner(b *testing.B) {
	tests := map[string]struct {
		header http.Header
		answer []byte
		piece  int
	}{
		"stream/event":     {answerHeader(".txt"), longStream(), 290},
		"stream/32KB":      {answerHeader(".txt"), longStream(), 32 << 10},
		"json/400KB":       {answerHeader(".json"), longAnswer(400 << 10), 32 << 10},
		"embeddings/400KB": {answerHeader(".json"), manyNumbers(34_000), 32 << 10},
	}
	for name, c := range tests {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.answer)))
			b.ReportAllocs()
			for b.Loop() {
				if u, _ := scanAnswer(c.header, c.answer, c.piece).usage(); u.promptTokens != 9 {
					b.Fatal(u)
				}
			}
		})
	}
}

func BenchmarkOpenBody(b *testing.B) {
	for _, size := range []int{2 << 10, 400 << 10} {
		for _, length := range []string{"sized", "chunked"} {
			b.Run(fmt.Sprintf("%s/%dKB", length, size>>10), func(b *testing.B) {
				sent := randomBytes(size)
				budget := newBodyBudget(1 << 30)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				reader := bytes.NewReader(nil)
				scratch := make([]byte, 32<<10)
				for b.Loop() {
					reader.Reset(sent)
					n := int64(size)
					if length == "chunked" {
						n = -1
					}
					b.StopTimer()
					r := requestWith(b.Context(), reader, n, true)
					b.StartTimer()
					body := openBody(r, 8<<20, budget)
					b.StopTimer()
					if !body.Complete() {
						b.Fatal("not complete")
					}
					for {
						if _, err := r.Body.Read(scratch); err != nil {
							break
						}
					}
					_ = r.Body.Close()
					body.release()
					b.StartTimer()
				}
			})
		}
	}
}
