package module

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

func responseBody(previous string) []byte {
	return fmt.Appendf(nil, `{"model":"m","input":"%s","previous_response_id":"%s"}`, strings.Repeat("lorem ipsum ", 250), previous)
}

// TestAnswersTeachTheLengthOfText has prompts that are three bytes per token by
// their answers.
func TestAnswersTeachTheLengthOfText(t *testing.T) {
	for name, test := range map[string]struct {
		limit  int64
		body   []byte
		answer func(*bookedAttempt)
		want   bool
	}{
		"ended":                       {1 << 20, chatBody(3000), func(a *bookedAttempt) { a.ended(time.Now()) }, true},
		"abandoned":                   {1 << 20, chatBody(3000), func(a *bookedAttempt) { a.abandon() }, false},
		"cut short":                   {1 << 10, chatBody(3000), func(a *bookedAttempt) { a.ended(time.Now()) }, false},
		"unreadable":                  {1 << 20, append([]byte("["), chatBody(3000)...), func(a *bookedAttempt) { a.ended(time.Now()) }, false},
		"a response":                  {1 << 20, responseBody(""), func(a *bookedAttempt) { a.ended(time.Now()) }, true},
		"continues a stored response": {1 << 20, responseBody("resp_1"), func(a *bookedAttempt) { a.ended(time.Now()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := newState(minIndexMemory)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = state.Destruct() }()
			policy := &CacheAware{MaxPrompt: test.limit, state: state, logger: zap.NewNop()}
			usual := state.ratios.Of("m")
			for range 20 {
				r, cancel := benchmarkRequest(test.body)
				if bytes.Contains(test.body, []byte(`"input"`)) {
					r.URL.Path = "/v1/responses"
				}
				if policy.Select(poolOf("a:1"), r, nil) == nil {
					t.Fatal("no replica chosen")
				}
				attempt := caddyhttp.GetVar(r.Context(), callVar).(*call).attempt
				attempt.usage(usage{promptTokens: 1000 + 2})
				test.answer(attempt)
				_ = r.Body.Close()
				cancel()
			}
			if got := state.ratios.Of("m"); (got.First > usual.First*1.2) != test.want || !test.want && got != usual {
				t.Errorf("ratio = %+v, usual %+v", got, usual)
			}
		})
	}
}
