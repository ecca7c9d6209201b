package module

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"pgregory.net/rapid"
)

// requestWith returns a request as Select gets it, guarded (the server's idle
// timeout is on, as by default) or not.
func requestWith(ctx context.Context, body io.Reader, length int64, guarded bool) *http.Request {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/completions", nil)
	r.Body, r.ContentLength = io.NopCloser(body), length
	if guarded {
		guard := &caddyhttp.IdleTimeoutReader{
			ReadCloser: r.Body,
			Ctrl:       http.NewResponseController(deadlineWriter{}),
			Deadline:   caddyhttp.IdleDeadline{Timeout: time.Minute},
		}
		r = r.WithContext(caddyhttp.ContextWithIdleTimeouts(ctx, guard, nil))
		r.Body = guard
	}
	return r
}

// deadlineWriter is a response writer on which deadlines can be set.
type deadlineWriter struct{ http.ResponseWriter }

func (deadlineWriter) SetReadDeadline(time.Time) error { return nil }

// Whatever earlier attempts read, a later one gets the body from its
// beginning, or an error where bytes are gone; never anything else.
func TestEveryAttemptGetsTheBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		sent := randomBytes(rapid.IntRange(1, 40_000).Draw(t, "size"))
		limit := rapid.IntRange(1, 50_000).Draw(t, "limit")
		length := int64(-1)
		if rapid.Bool().Draw(t, "sized") {
			length = int64(len(sent))
		}
		budget := newBodyBudget(int64(rapid.SampledFrom([]int{0, 20_000, 1 << 20}).Draw(t, "budget")))
		body := io.Reader(bytes.NewReader(sent))
		if rapid.Bool().Draw(t, "in small pieces") {
			body = iotest.HalfReader(iotest.HalfReader(iotest.DataErrReader(body)))
		}
		r := requestWith(ctx, body, length, rapid.Bool().Draw(t, "guarded"))
		deepest := 0
		for range rapid.IntRange(1, 4).Draw(t, "attempts") {
			b := openBody(r, int64(limit), budget)
			kept := len(b.Prefix())
			if !bytes.Equal(b.Prefix(), sent[:kept]) || b.Complete() && kept < len(sent) {
				t.Fatalf("prefix of %d bytes, complete %v", kept, b.Complete())
			}
			want := rapid.IntRange(0, len(sent)+10).Draw(t, "read")
			got, err := io.ReadAll(io.LimitReader(r.Body, int64(want)))
			if gone := !b.Complete() && deepest > kept; (err != nil) != (gone && want > 0) {
				t.Fatalf("read %d of %d, copy %d, before %d: %v", want, len(sent), kept, deepest, err)
			}
			if err == nil && !bytes.Equal(got, sent[:min(want, len(sent))]) {
				t.Fatalf("read %d of %d: got %d other bytes", want, len(sent), len(got))
			}
			deepest = max(deepest, want)
			if rapid.Bool().Draw(t, "close") {
				_ = r.Body.Close()
			}
		}
		cancel()
		for deadline := time.Now().Add(patience); budget.used.Load() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes not given back", budget.used.Load())
			}
		}
	})
}

// All copies together stay within the budget, but for the smallest of each.
func TestBodyBudget(t *testing.T) {
	budget := newBodyBudget(64 << 10)
	ctx, cancel := context.WithCancel(context.Background())
	sent := randomBytes(60_000)
	for i := range 10 {
		r := requestWith(ctx, bytes.NewReader(sent), int64(len(sent)), true)
		b := openBody(r, 1<<20, budget)
		want := minBodyCopy
		if i == 0 {
			want = len(sent)
		}
		if len(b.Prefix()) != want || b.Complete() != (i == 0) {
			t.Errorf("body %d: prefix of %d bytes, want %d", i, len(b.Prefix()), want)
		}
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("body %d: read %d bytes, %v", i, len(got), err)
		}
	}
	if most := int64(64<<10 + 9*minBodyCopy); budget.used.Load() != most {
		t.Errorf("budget used %d, want %d", budget.used.Load(), most)
	}
	cancel()
	awaitTrue(t, "given back", func() bool { return budget.used.Load() == 0 })
}

// Memory that a transport may still be sending from is not reused.
func TestReleaseWaitsForReaders(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		budget := newBodyBudget(1 << 20)
		sent := randomBytes(10_000)
		r := requestWith(t.Context(), bytes.NewReader(sent), int64(len(sent)), guarded)
		b := openBody(r, 1<<20, budget)
		b.release()
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("after release: read %d bytes, %v", len(got), err)
		}
		if budget.used.Load() == 0 {
			t.Error("freed under its reader")
		}
		stopped := false
		stop := b.copy.stop
		b.copy.stop = func() bool { stopped = true; return stop() }
		_ = r.Body.Close()
		if budget.used.Load() != 0 || b.Prefix() != nil || !stopped {
			t.Errorf("not freed: %d bytes, stopped %v", budget.used.Load(), stopped)
		}
		_ = r.Body.Close()
		if again := b.open(); again != nil {
			if n, err := again.Read(make([]byte, 10)); n != 0 || err == nil {
				t.Errorf("after freeing: read %d bytes, %v", n, err)
			}
		}
	}
}

// A request that ends under its readers takes their memory with it, unused by
// others.
func TestRequestEndsUnderReader(t *testing.T) {
	budget := newBodyBudget(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	sent := randomBytes(10_000)
	r := requestWith(ctx, bytes.NewReader(sent), int64(len(sent)), true)
	prefix := openBody(r, 1<<20, budget).Prefix()
	cancel()
	awaitTrue(t, "given back", func() bool { return budget.used.Load() == 0 })
	for range 10 {
		memory := allocateBodyCopy(10_000)
		clear(*memory)
	}
	if !bytes.Equal(prefix, sent) {
		t.Error("prefix changed under its user")
	}
	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("read a body that is gone")
	}
}

// A reader between us and the server that decodes the body, eagerly or not,
// gets the server's bytes; what comes out of it is not replayed from them.
func TestAlteredBody(t *testing.T) {
	alter := map[string]func(io.Reader) io.Reader{
		"inverting": func(r io.Reader) io.Reader { return inverted{r} },
		"insisting": func(r io.Reader) io.Reader { return inverted{insisting{r}} },
	}
	for name, through := range alter {
		t.Run(name, func(t *testing.T) {
			sent := randomBytes(10_000)
			want, _ := io.ReadAll(inverted{bytes.NewReader(sent)})
			r := requestWith(t.Context(), bytes.NewReader(sent), -1, true)
			r.Body = io.NopCloser(through(r.Body))
			openBody(r, 1<<20, nil)
			if got, err := io.ReadAll(io.LimitReader(r.Body, 5000)); err != nil || !bytes.Equal(got, want[:5000]) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			openBody(r, 1<<20, nil)
			if got, err := io.ReadAll(r.Body); err == nil && !bytes.Equal(got, want) {
				t.Errorf("second attempt got %d wrong bytes", len(got))
			}
		})
	}
}

// inverted flips all bits.
type inverted struct{ io.Reader }

func (i inverted) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	for j := range p[:n] {
		p[j] = ^p[j]
	}
	return n, err
}

// insisting reads until it gets something, and gives up in the end.
type insisting struct{ io.Reader }

func (i insisting) Read(p []byte) (int, error) {
	for range 100 {
		if n, err := i.Reader.Read(p); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// A read error follows the data and is remembered.
func TestBodyReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, guarded := range []bool{true, false} {
		sent := randomBytes(10_000)
		r := requestWith(t.Context(), io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(broken)), -1, guarded)
		b := openBody(r, 1<<20, nil)
		if b.Complete() || !errors.Is(b.refusal(t.Context()), broken) {
			t.Errorf("complete %v, refused with %v", b.Complete(), b.refusal(t.Context()))
		}
		got, err := io.ReadAll(r.Body)
		if !errors.Is(err, broken) || !bytes.Equal(got, sent) {
			t.Errorf("guarded %v: got %d bytes, %v", guarded, len(got), err)
		}
		openBody(r, 1<<20, nil)
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("guarded %v: second attempt sees a whole body", guarded)
		}
	}
}
