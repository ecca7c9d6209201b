package module

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed5db0839e/caddy-cache-aware/internal/measure"
)

// anyJSON draws a JSON value that may look like a report of usage everywhere.
func anyJSON(depth int) *rapid.Generator[any] {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"usage", "prompt_tokens", "timings", "id", "a\"b", "\\", "{", "]", "long" + string(make([]byte, 200))}),
		rapid.String(),
	)
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64().AsAny(), rapid.Int().AsAny(), name.AsAny(),
		rapid.Just[any](`{"usage":{"prompt_tokens":1}}`),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth - 1) })
	return rapid.OneOf(append(leaves,
		rapid.SliceOfN(inner, 0, 4).AsAny(), rapid.MapOfN(name, inner, 0, 4).AsAny())...)
}

// Usage is found among whatever else an answer holds, by its place alone.
func TestScanFindsUsageAmongAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answer := map[string]any{}
		for _, name := range []string{"aaa", "choices", "data", "output", "zzz"} {
			if rapid.Bool().Draw(t, name) {
				answer[name] = anyJSON(3).Draw(t, "value")
			}
		}
		want := usage{
			promptTokens: rapid.IntRange(1, 1e6).Draw(t, "prompt"),
			cachedTokens: rapid.IntRange(0, 1e6).Draw(t, "cached"),
			cachedKnown:  true,
			outputTokens: rapid.IntRange(1, 1e6).Draw(t, "output"),
			responseID:   "resp_" + rapid.StringMatching(`[a-z0-9]{0,60}`).Draw(t, "id"),
		}
		answer["id"] = want.responseID
		answer["usage"] = map[string]any{
			"prompt_tokens": want.promptTokens, "completion_tokens": want.outputTokens,
			"prompt_tokens_details": map[string]any{"cached_tokens": want.cachedTokens, "other": anyJSON(2).Draw(t, "other")},
			"cost":                  anyJSON(2).Draw(t, "cost"),
		}
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "indented") {
			var indented bytes.Buffer
			_ = json.Indent(&indented, text, "", "\t")
			text = indented.Bytes()
		}
		s := scanAnswer(answerHeader(".json"), text, rapid.IntRange(1, 50).Draw(t, "pieces"))
		if got, _ := s.usage(); got != want {
			t.Fatalf("in %s\n got %+v\nwant %+v", text, got, want)
		}
	})
}

// FuzzResponseScanner feeds an answer whole and in pieces, with the same
// result, whatever it is.
func FuzzResponseScanner(f *testing.F) {
	recordings, _ := filepath.Glob(filepath.Join("testdata", "answers", "*"))
	for _, name := range recordings {
		answer, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(answer, []byte{1, 2, 3}, uint8(formEvents))
		f.Add(answer, []byte{0}, uint8(formJSON))
	}
	for _, c := range engineAnswers {
		f.Add([]byte(c.answer), []byte{9, 1}, uint8(formOf(c.header)))
	}
	for _, odd := range []string{
		"data", "data:", "data:\n\ndata:{\"id\":\n", "]}{[", `{"usage":{"prompt_tokens":1e400,`, "\r\r\n:\n\n", `"\`, `{"\u0069d":"x"}`,
		`{"usage":{"prompt_tokens":11111111111111111111111111111111111111111111}}`, `{"id":"\n"}`, `{"id":["a"],"usage":[[{"prompt_tokens":1}]]}`,
	} {
		f.Add([]byte(odd), []byte{1}, uint8(formLines))
		f.Add([]byte("data: "+odd+"\n\n"), []byte{1}, uint8(formEvents))
	}
	f.Fuzz(func(t *testing.T, answer, cuts []byte, form uint8) {
		whole := responseScanner{form: responseForm(form % 4)}
		pieces := whole
		measure.Bounded(t, 64<<10, func() {
			whole.feed(answer)
			for i := 0; len(answer) > 0; i++ {
				n := 1
				if len(cuts) > 0 {
					n = min(1+int(cuts[i%len(cuts)]), len(answer))
				}
				pieces.feed(answer[:n])
				answer = answer[n:]
			}
		})
		a, _ := whole.usage()
		b, _ := pieces.usage()
		if a != b || whole.firstToken() != pieces.firstToken() {
			t.Errorf("whole %+v, in pieces %+v", a, b)
		}
		if a.promptTokens < 0 || a.cachedTokens < 0 || a.outputTokens < 0 || len(a.responseID) > maxIDBytes {
			t.Errorf("impossible %+v", a)
		}
	})
}
