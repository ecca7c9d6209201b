package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed5db0839e/caddy-cache-aware/internal/refuse"
)

// httpFetch fetches over HTTP; a replica is a host and port.
func httpFetch(t testing.TB) Fetch {
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	return func(ctx context.Context, replica, path string, header http.Header) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+replica+path, nil)
		if err != nil {
			return nil, err
		}
		for name, values := range header {
			req.Header[name] = values
		}
		return transport.RoundTrip(req)
	}
}

func serve(t testing.TB, handler http.HandlerFunc) (replica string) {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func encoded(encoding string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(body)
	}
}

// endless writes a page of 100 MB, or as much of it as the client takes, and
// notes the largest part taken when the client has left.
func endless(most *atomic.Int64) http.HandlerFunc {
	chunk := bytes.Repeat([]byte(vllmLoad), 1000)
	return func(w http.ResponseWriter, _ *http.Request) {
		var sent int64
		for sent < 100<<20 {
			n, err := w.Write(chunk)
			sent += int64(n)
			if err != nil {
				break
			}
		}
		for m := most.Load(); sent > m && !most.CompareAndSwap(m, sent); m = most.Load() {
		}
	}
}

func slowLoris(w http.ResponseWriter, r *http.Request) {
	for i := 0; r.Context().Err() == nil; i++ {
		_, _ = w.Write([]byte(vllmLoad)[i%len(vllmLoad):][:1])
		w.(http.Flusher).Flush()
		time.Sleep(time.Millisecond)
	}
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(vllmLoad))
	panic(http.ErrAbortHandler)
}

func garbage() []byte {
	b := make([]byte, 200<<10)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(b)
	return b
}

// TestBadPages has replicas that answer badly in every way beside good ones.
// Each is noted once in the log, and the good ones do not suffer.
func TestBadPages(t *testing.T) {
	var got reports
	core, logs := observer.New(zap.WarnLevel)
	bad := map[string]http.HandlerFunc{
		"hung":             func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"hung body":        hungBody,
		"slow-loris":       slowLoris,
		"status 500":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, vllmLoad, 500) },
		"gzip bomb":        encoded("gzip", zipped(bytes.Repeat([]byte(vllmLoad), 4<<20/len(vllmLoad)+1))),
		"gzip cut off":     encoded("gzip", zipped(garbage())[:1000]),
		"no gzip":          encoded("gzip", []byte(vllmLoad)),
		"unknown encoding": encoded("br", []byte(vllmLoad)),
		"garbage":          text(string(garbage())),
		"one huge line":    text(strings.Repeat("x", 3<<20)),
		"web page":         text("<!doctype html><html></html>"),
		"JSON":             text(`{"detail":"Not Found"}`),
		"empty":            text(""),
		"cut off":          cutOff,
		"redirect":         http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP,
	}
	good := map[string]http.HandlerFunc{
		"plain":              text(vllmLoad),
		"gzip":               encoded("gzip", zipped([]byte(vllmLoad))),
		"wrong content type": typed("text/html", vllmLoad),
	}
	p := newPoller(t, Config{
		Fetch: httpFetch(t), Engine: "vllm", Interval: 10 * time.Millisecond, Timeout: time.Second,
		OnReport: got.take, Logger: zap.New(core),
	})
	badAt, goodAt := addAll(t, p, bad), addAll(t, p, good)
	p.Start()
	for name, replica := range badAt {
		eventually(t, name+" fails", func() bool {
			s, _ := p.Status(replica)
			return s.Failures >= 2
		})
		if n := len(got.of(replica)); n != 0 {
			t.Errorf("%s: %d reports", name, n)
		}
		if n := logs.FilterField(zap.String("replica", replica)).Len(); n != 1 {
			t.Errorf("%s: %d log lines", name, n)
		}
	}
	for name, replica := range goodAt {
		n := len(got.of(replica))
		eventually(t, name+" goes on", func() bool { return len(got.of(replica)) > n+5 })
		eventually(t, name+" is fine", func() bool {
			s, _ := p.Status(replica)
			return s.Err == nil
		})
	}
}

// TestEndlessPage gives the poll all the time that reading as much as it may takes.
func TestEndlessPage(t *testing.T) {
	var taken atomic.Int64
	replica := serve(t, endless(&taken))
	p := newPoller(t, Config{Fetch: httpFetch(t), Engine: "vllm", Timeout: time.Minute})
	p.Add(replica)
	once(p, replica)
	if s, _ := p.Status(replica); !errors.Is(s.Err, errTooLong) {
		t.Errorf("error is %v", s.Err)
	}
	eventually(t, "the page is left", func() bool { return taken.Load() > 0 })
	if n := taken.Load(); n < 4<<20 || n > 50<<20 {
		t.Errorf("%d MB of the page were taken", n>>20)
	}
}

func hungBody(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(vllmLoad))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}

func addAll(t *testing.T, p *Poller, handlers map[string]http.HandlerFunc) map[string]string {
	at := make(map[string]string, len(handlers))
	for name, handler := range handlers {
		at[name] = serve(t, handler)
		p.Add(at[name])
	}
	return at
}

// eventually waits for what has to become true; the time allowed only bounds a
// failing test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// TestLimit reads pages of sizes around the bound, plain and compressed.
func TestLimit(t *testing.T) {
	const limit = 100 << 10
	for _, size := range []int{limit - 1, limit, limit + 1, 3 * limit} {
		page := []byte(vllmLoad + strings.Repeat("#", size-len(vllmLoad)))
		for encoding, body := range map[string][]byte{"": page, "gzip": zipped(page)} {
			s := scratches.New().(*scratch)
			got, err := s.read(bytes.NewReader(body), encoding, limit)
			if size <= limit && (err != nil || !bytes.Equal(got, page)) {
				t.Errorf("%d bytes %s: %v", size, encoding, err)
			}
			if size > limit && !errors.Is(err, errTooLong) {
				t.Errorf("%d bytes %s: error is %v", size, encoding, err)
			}
			if cap(s.buf) > 3*limit {
				t.Errorf("%d bytes %s: buffer of %d bytes", size, encoding, cap(s.buf))
			}
		}
	}
}

// nothings is an endless gzip body that decodes to nothing.
type nothings struct {
	member []byte
	read   int
}

func (n *nothings) Read(p []byte) (int, error) {
	read := copy(p, n.member[n.read%len(n.member):])
	n.read += read
	return read, nil
}

func TestLimitOfCompressedBytes(t *testing.T) {
	body := &nothings{member: zipped(nil)}
	s := scratches.New().(*scratch)
	if _, err := s.read(body, "gzip", 100<<10); err == nil {
		t.Error("a body without end is read")
	}
	if body.read > 200<<10 {
		t.Errorf("%d bytes of it are read", body.read)
	}
}

func TestReadingReusesItsBuffers(t *testing.T) {
	page := zipped(bytes.Repeat([]byte(vllmLoad), 1000))
	s := scratches.New().(*scratch)
	body := bytes.NewReader(page)
	allocs := testing.AllocsPerRun(20, func() {
		body.Reset(page)
		if _, err := s.read(body, "gzip", 1<<20); err != nil {
			t.Error(err)
		}
	})
	if allocs > 1 {
		t.Errorf("%v allocations for a body", allocs)
	}
}

func TestConnectionRefused(t *testing.T) {
	replica := refuse.Address(t)
	p := newPoller(t, Config{Fetch: httpFetch(t)})
	p.Add(replica)
	once(p, replica)
	if s, _ := p.Status(replica); s.Failures != 1 || !strings.Contains(fmt.Sprint(s.Err), "refused") {
		t.Errorf("status is %+v", s)
	}
}
