package module

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"
)

// BenchmarkSelect measures all that the policy does before a replica is
// known: reading the body, the prompt's keys, lookup, decision and booking.
func BenchmarkSelect(b *testing.B) {
	for _, replicas := range []int{4, 64, 512} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"2KB", 2 << 10}, {"32KB", 32 << 10}, {"400KB", 400 << 10}} {
			b.Run(fmt.Sprintf("%s/%dreplicas", size.name, replicas), func(b *testing.B) {
				benchmarkSelect(b, replicas, chatBody(size.bytes))
			})
		}
	}
}

func benchmarkSelect(b *testing.B, replicas int, body []byte) {
	state, err := newState(defaultIndexMemory)
	if err != nil {
		b.Fatal(err)
	}
	defer state.Destruct()
	policy := &CacheAware{MaxPrompt: defaultMaxPrompt, state: state, logger: zap.NewNop()}
	pool := make(reverseproxy.UpstreamPool, replicas)
	for i := range pool {
		pool[i] = &reverseproxy.Upstream{Host: new(reverseproxy.Host), Dial: fmt.Sprintf("10.0.%d.%d:8000", i/256, i%256)}
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r, cancel := benchmarkRequest(body)
		b.StartTimer()
		if policy.Select(pool, r, nil) == nil {
			b.Fatal("no replica chosen")
		}
		b.StopTimer()
		call := caddyhttp.GetVar(r.Context(), callVar).(*call)
		_ = r.Body.Close() // as when the body has been sent
		call.body.release()
		call.attempt.abandon()
		cancel()
		b.StartTimer()
	}
}

// benchmarkRequest is a request as Select gets it.
func benchmarkRequest(body []byte) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, make(map[string]any))
	ctx = context.WithValue(ctx, caddy.ReplacerCtxKey, caddy.NewReplacer())
	ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, new(caddyhttp.ExtraLogFields))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://proxy/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r, cancel
}

// chatBody is a chat of about so many bytes, in messages of up to 4 KB, with
// three escapes in every 80 bytes.
func chatBody(size int) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	messages := []message{{"system", "You are a helpful assistant."}}
	for i := 0; size > 0; i++ {
		n := min(size, 4<<10)
		line := fmt.Sprintf("line %d of some prose that is about as long as lines of code and text \"are\",\n", i)
		text := strings.Repeat(line, n/len(line)+1)[:n]
		messages = append(messages, message{[]string{"user", "assistant"}[i%2], text})
		size -= n
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages, "stream": true})
	if err != nil {
		panic(err)
	}
	return body
}
