package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestChatAnswer(t *testing.T) {
	s := start(t, Options{})
	body := map[string]any{"model": "simulated", "max_tokens": 20, "messages": []turn{user(Text(1, 100))}}
	status, c := ask(t, s, "/v1/chat/completions", body)
	if status != http.StatusOK || c.Object != "chat.completion" || *c.Choices[0].FinishReason != "length" {
		t.Fatalf("status %d, answer %+v", status, c)
	}
	if n := CountTokens(c.Choices[0].Message.Content); n != 20 {
		t.Errorf("%d tokens, want 20", n)
	}
	want := usage{PromptTokens: 100 + TurnTokens + AnswerTokens, CompletionTokens: 20, TotalTokens: 123}
	if u := *c.Usage; u.PromptTokens != want.PromptTokens || u.CompletionTokens != 20 || u.TotalTokens != want.TotalTokens || u.Details.CachedTokens != 0 {
		t.Errorf("usage %+v", u)
	}
	if _, again := ask(t, s, "/v1/chat/completions", body); again.Usage.Details.CachedTokens != 96 {
		t.Errorf("cached = %d the second time, want 96", again.Usage.Details.CachedTokens)
	}
}

func TestStreamSaysTheSame(t *testing.T) {
	s := start(t, Options{StreamInterval: 3})
	body := map[string]any{"messages": []turn{user("What is new?")}, "stream_options": map[string]any{"include_usage": true}}
	_, whole := ask(t, s, "/v1/chat/completions", body)
	chunks := askStream(t, s, "/v1/chat/completions", body)
	var text strings.Builder
	for _, c := range chunks[:len(chunks)-1] {
		text.WriteString(c.Choices[0].Delta.Content)
	}
	if text.String() != whole.Choices[0].Message.Content {
		t.Errorf("streamed %q, want %q", text.String(), whole.Choices[0].Message.Content)
	}
	if chunks[0].Choices[0].Delta.Role != "assistant" || *chunks[len(chunks)-2].Choices[0].FinishReason != "stop" {
		t.Errorf("first chunk %+v, last %+v", chunks[0], chunks[len(chunks)-2])
	}
	if last := chunks[len(chunks)-1]; len(last.Choices) != 0 || last.Usage.CompletionTokens != whole.Usage.CompletionTokens {
		t.Errorf("usage chunk %+v, want that of %+v", last, whole.Usage)
	}
	if n := CountTokens(text.String()) + 1; n != whole.Usage.CompletionTokens {
		t.Errorf("text and end of turn are %d tokens, want %d", n, whole.Usage.CompletionTokens)
	}
}

func TestTextCompletion(t *testing.T) {
	s := start(t, Options{})
	for _, prompt := range []any{Text(1, 40), []string{Text(1, 40)}} {
		_, c := ask(t, s, "/v1/completions", map[string]any{"prompt": prompt, "max_tokens": 5})
		if c.Object != "text_completion" || c.Usage.PromptTokens != 40 || CountTokens(*c.Choices[0].Text) != 5 {
			t.Errorf("answer %+v, usage %+v", c, c.Usage)
		}
	}
	_, c := ask(t, s, "/v1/completions", map[string]any{"prompt": []int{5, 6, 7}, "max_tokens": 2})
	if c.Usage.PromptTokens != 3 {
		t.Errorf("%d prompt tokens, want 3", c.Usage.PromptTokens)
	}
	chunks := askStream(t, s, "/v1/completions", map[string]any{"prompt": "x", "max_tokens": 4})
	if len(chunks) == 0 || chunks[0].Choices[0].Text == nil || chunks[0].Usage != nil {
		t.Errorf("chunks %+v", chunks)
	}
}

// TestNextTurnHitsTheReply sends the answer back as an assistant message: all of
// it but the last token was computed, so the hit reaches into it.
func TestNextTurnHitsTheReply(t *testing.T) {
	for _, limit := range []int{0, 100} {
		s := start(t, Options{})
		tools := []map[string]any{{"type": "function", "function": map[string]any{"name": "read_file", "description": Text(9, 60)}}}
		turns := []turn{{"system", Text(1, 50)}, user(Text(2, 30))}
		body := map[string]any{"messages": turns, "tools": tools}
		if limit > 0 {
			body["max_tokens"] = limit
		}
		_, first := ask(t, s, "/v1/chat/completions", body)
		body["messages"] = append(turns, turn{"assistant", first.Choices[0].Message.Content}, user(Text(3, 30)))
		_, second := ask(t, s, "/v1/chat/completions", body)
		known := first.Usage.TotalTokens - 1
		if got, want := second.Usage.Details.CachedTokens, known/16*16; got != want {
			t.Errorf("limit %d: cached = %d, want %d of %d", limit, got, want, known)
		}
	}
}

func TestModelsAdaptersAndSaltsShareNothing(t *testing.T) {
	s := start(t, Options{Models: []string{"base", "adapter"}})
	for i, extra := range []map[string]any{{"model": "base"}, {"model": "adapter"}, {"model": "base", "cache_salt": "tenant"}, {"model": ""}} {
		body := map[string]any{"messages": []turn{user(Text(1, 100))}, "max_tokens": 1}
		for k, v := range extra {
			body[k] = v
		}
		_, c := ask(t, s, "/v1/chat/completions", body)
		want := 0
		if i == 3 { // no model is the base model
			want = 96
		}
		if c.Usage.Details.CachedTokens != want {
			t.Errorf("%v: cached = %d, want %d", extra, c.Usage.Details.CachedTokens, want)
		}
	}
	_, list := get(t, s.URL()+"/v1/models")
	if !strings.Contains(list, `"id":"adapter"`) || !strings.Contains(list, `"parent":"base"`) {
		t.Errorf("models %s", list)
	}
}

func TestBadRequests(t *testing.T) {
	s := start(t, Options{})
	chat, text := "/v1/chat/completions", "/v1/completions"
	hello := []turn{user("hello")}
	tests := []struct {
		name   string
		path   string
		body   map[string]any
		status int
	}{
		{"unknown model", chat, map[string]any{"model": "other", "messages": hello}, 404},
		{"no messages", chat, map[string]any{}, 400},
		{"content of a wrong type", chat, map[string]any{"messages": []any{map[string]any{"role": "user", "content": 7}}}, 400},
		{"part of a wrong type", chat, map[string]any{"messages": []any{map[string]any{"role": "user", "content": []int{7}}}}, 400},
		{"no prompt", text, map[string]any{}, 400},
		{"several prompts", text, map[string]any{"prompt": []string{"a", "b"}}, 400},
		{"empty prompt", text, map[string]any{"prompt": ""}, 400},
		{"no output", chat, map[string]any{"messages": hello, "max_tokens": 0}, 400},
		{"too long", chat, map[string]any{"messages": hello, "max_tokens": 1_000_000_000}, 400},
		{"several answers", chat, map[string]any{"messages": hello, "n": 2}, 400},
		{"wrong path", "/v1/chats", nil, 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if status, answer := post(t, s, tt.path, tt.body); status != tt.status {
				t.Errorf("status %d, want %d: %s", status, tt.status, answer)
			}
		})
	}
}

func TestContentParts(t *testing.T) {
	s := start(t, Options{})
	image := func(url string) map[string]any {
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}}
	}
	cached := func(url string) int {
		parts := []any{map[string]any{"type": "text", "text": Text(1, 40)}, image(url)}
		_, c := ask(t, s, "/v1/chat/completions", map[string]any{"messages": []any{map[string]any{"role": "user", "content": parts}}, "max_tokens": 1})
		if want := 40 + imageTokens + TurnTokens + AnswerTokens; c.Usage.PromptTokens != want {
			t.Errorf("%d prompt tokens, want %d", c.Usage.PromptTokens, want)
		}
		return c.Usage.Details.CachedTokens
	}
	if got := []int{cached("a"), cached("a"), cached("b")}; !slices.Equal(got, []int{0, 288, 32}) {
		t.Errorf("cached = %v, want 0, 288, 32", got)
	}
}

func TestHiddenCachedTokensAndRecordedRequests(t *testing.T) {
	s := start(t, Options{HideCachedTokens: true, Record: true})
	raw := "{ \"messages\":[{\"content\":\"hi\",  \"role\":\"user\"}], \"max_tokens\":2}"
	request, _ := http.NewRequest(http.MethodPost, s.URL()+"/v1/chat/completions", strings.NewReader(raw))
	request.Header.Set("X-Session-Id", "7")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var c completion
	if err := json.NewDecoder(response.Body).Decode(&c); err != nil {
		t.Fatal(err)
	}
	if c.Usage.Details != nil {
		t.Errorf("usage %+v shows cached tokens", c.Usage)
	}
	seen := s.Requests()
	if len(seen) != 1 || string(seen[0].Body) != raw || seen[0].Header.Get("X-Session-Id") != "7" || seen[0].Path != "/v1/chat/completions" {
		t.Errorf("recorded %+v", seen)
	}
}

func TestFailureMode(t *testing.T) {
	s := start(t, Options{})
	body := map[string]any{"messages": []turn{user("hello")}, "max_tokens": 1}
	s.Fail(http.StatusTooManyRequests)
	if status, _ := post(t, s, "/v1/chat/completions", body); status != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", status)
	}
	s.Fail(0)
	if status, _ := post(t, s, "/v1/chat/completions", body); status != http.StatusOK {
		t.Errorf("status %d, want 200", status)
	}
}

func TestDisconnectCancelsTheRequest(t *testing.T) {
	for _, stream := range []bool{true, false} {
		s := start(t, Options{})
		s.Slow(1)
		raw, _ := json.Marshal(map[string]any{"messages": []turn{user("hello")}, "max_tokens": 100_000, "stream": stream})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/chat/completions", bytes.NewReader(raw))
		go func() {
			if response, err := http.DefaultClient.Do(request); err == nil {
				defer response.Body.Close()
				<-ctx.Done()
			}
		}()
		eventually(t, "the request runs", func() bool { return s.Stats().Running == 1 })
		cancel()
		eventually(t, "the request is dropped", func() bool { st := s.Stats(); return st.Running == 0 && st.UsedTokens == 0 })
	}
}

func TestMetricsPage(t *testing.T) {
	s := start(t, Options{Models: []string{"m"}})
	body := map[string]any{"messages": []turn{user(Text(1, 100))}, "max_tokens": 3}
	ask(t, s, "/v1/chat/completions", body)
	ask(t, s, "/v1/chat/completions", body)
	_, page := get(t, s.URL()+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0, "vllm:kv_cache_usage_perc": 0,
		"vllm:prefix_cache_queries_total": 206, "vllm:prefix_cache_hits_total": 96, "vllm:prompt_tokens_total": 206,
		"vllm:generation_tokens_total": 6, "vllm:num_preemptions_total": 0, "vllm:request_success_total": 2,
	}
	for name, value := range want {
		m := families[name].GetMetric()
		if len(m) != 1 || m[0].GetGauge().GetValue()+m[0].GetCounter().GetValue() != value {
			t.Errorf("%s = %v, want %v", name, m, value)
		}
	}
	computed := families["vllm:request_prefill_kv_computed_tokens"].GetMetric()[0].GetHistogram()
	if computed.GetSampleSum() != 110 || computed.GetSampleCount() != 2 {
		t.Errorf("computed tokens %v", computed)
	}
	for _, part := range []string{`num_gpu_blocks="25000"`, `kv_cache_size_tokens="400000"`, `block_size="16"`, `engine="0"`} {
		if !strings.Contains(page, part) {
			t.Errorf("no %s in the page", part)
		}
	}
	if families["process_start_time_seconds"].GetMetric()[0].GetGauge().GetValue() < 1e9 {
		t.Error("no start time")
	}
}

func TestResetPrefixCache(t *testing.T) {
	s := start(t, Options{})
	body := map[string]any{"messages": []turn{user(Text(1, 100))}, "max_tokens": 1}
	ask(t, s, "/v1/chat/completions", body)
	if _, answer := post(t, s, "/reset_prefix_cache", nil); !strings.Contains(string(answer), "true") {
		t.Errorf("answer %s", answer)
	}
	if _, c := ask(t, s, "/v1/chat/completions", body); c.Usage.Details.CachedTokens != 0 {
		t.Errorf("cached = %d after a reset", c.Usage.Details.CachedTokens)
	}
	s.ClearCache()
	if _, c := ask(t, s, "/v1/chat/completions", body); c.Usage.Details.CachedTokens != 0 {
		t.Errorf("cached = %d after ClearCache", c.Usage.Details.CachedTokens)
	}
}
