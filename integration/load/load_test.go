package load

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func small() *workload.Workload {
	return workload.Agents{
		Users: 4, Sessions: 10, Kinds: 2, ToolCount: 3, ToolTokens: 50, SystemTokens: 100,
		MinTurns: 2, MaxTurns: 3, AddedTokens: 40, AnswerTokens: 10, Think: time.Millisecond,
	}.Workload(1)
}

func start(t *testing.T) *engine.Server {
	t.Helper()
	s, err := engine.Start(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Slow(0.1)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestRunSendsEveryTurnAndReadsUsage(t *testing.T) {
	s, w := start(t), small()
	var last atomic.Int64
	results := Client{URL: s.URL(), Progress: func(done int) { last.Store(max(last.Load(), int64(done))) }}.Run(t.Context(), w)
	if len(results) != w.Requests() || last.Load() == 0 {
		t.Fatalf("%d results and progress to %d, want %d", len(results), last.Load(), w.Requests())
	}
	for _, r := range results {
		answer := w.Sessions[r.Session].Turns[r.Turn].Answer.Tokens
		if r.Err != nil || r.OutputTokens != answer || r.TTFT <= 0 || r.TTFT > r.Total {
			t.Errorf("result %+v, want %d tokens", r, answer)
		}
		if r.Turn > 0 && r.CachedTokens < 100 {
			t.Errorf("turn %d of session %d: %d tokens cached", r.Turn, r.Session, r.CachedTokens)
		}
	}
	if st := s.Stats(); st.Requests != len(results) {
		t.Errorf("the engine finished %d requests, want %d", st.Requests, len(results))
	}
}

func TestErrorsEndTheirSession(t *testing.T) {
	s, w := start(t), small()
	s.Fail(http.StatusServiceUnavailable)
	results := Client{URL: s.URL()}.Run(t.Context(), w)
	if len(results) != len(w.Sessions) {
		t.Fatalf("%d results, want one for each of %d sessions", len(results), len(w.Sessions))
	}
	for _, r := range results {
		if r.Err == nil || !strings.Contains(r.Err.Error(), "503") {
			t.Errorf("error %v, want status 503", r.Err)
		}
	}
	s.Crash()
	for _, r := range (Client{URL: s.URL()}).Run(t.Context(), w) {
		if r.Err == nil {
			t.Error("no error from an engine that is down")
		}
	}
}

func TestCancelledRunComesBack(t *testing.T) {
	s := start(t)
	s.Slow(1000)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	for _, r := range (Client{URL: s.URL()}).Run(ctx, small()) {
		if r.Err == nil {
			t.Error("a cancelled request has no error")
		}
	}
}

// TestLimitLetsRequestsOnTheirWayFinish has answers that take far longer than
// requests may begin: each of the users begins one.
func TestLimitLetsRequestsOnTheirWayFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := small()
		engine := &http.Client{Transport: answersAfter(time.Minute)}
		results := Client{URL: "http://engine", Limit: time.Second, HTTP: engine}.Run(t.Context(), w)
		if len(results) != w.Users {
			t.Errorf("%d results, want one for each of %d users", len(results), w.Users)
		}
		for _, r := range results {
			if r.Err != nil || r.Total != time.Minute {
				t.Errorf("error %v after %v", r.Err, r.Total)
			}
		}
	})
}

// answersAfter is an engine without a network, for tests in virtual time.
type answersAfter time.Duration

func (d answersAfter) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(d))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("data: [DONE]\n\n"))}, nil
}

func TestReadStream(t *testing.T) {
	tests := []struct {
		name, stream, text, problem string
	}{
		{"two pieces", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" b\"}}]}\n\ndata: [DONE]\n\n", "a b", ""},
		{"comments are skipped", ": hello\n\ndata: [DONE]\n\n", "", ""},
		{"cut off", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", "", "before [DONE]"},
		{"not JSON", "data: {\n\n", "", "decoding event"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := readStream(strings.NewReader(tt.stream), &Result{Begin: time.Now()})
			if text != tt.text || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("text %q, error %v, want %q, %q", text, err, tt.text, tt.problem)
			}
		})
	}
}
