package health

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	serveIfChild()

	goleak.VerifyTestMain(m)
}

// told returns what a report tells, by name.
func told(r Report) map[string]float64 {
	m := make(map[string]float64)
	for i, q := range r.quantities() {
		if Known(*q) {
			m[quantityNames[i]] = *q
		}
	}
	return m
}

// near reports whether two sets of quantities are the same but for rounding.
func near(a, b map[string]float64) bool {
	return maps.EqualFunc(a, b, func(x, y float64) bool {
		return max(x, y)-min(x, y) <= 1e-9*max(x, y)
	})
}

func wantTold(t *testing.T, r Report, want map[string]float64) {
	t.Helper()
	if got := told(r); !near(got, want) {
		t.Errorf("the page tells\n\t%v, want\n\t%v", got, want)
	}
}

// recording returns a file of testdata, unzipped.
func recording(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}

// engine is a fake replica: it answers its pages with status 200, others with
// 404, and notes what was asked for.
type engine struct {
	mu     sync.Mutex
	pages  map[string]string
	status map[string]int // instead of 200 or 404
	err    error          // instead of any answer
	asked  []string
}

func newEngine(pages map[string]string) *engine {
	return &engine{pages: pages, status: make(map[string]int)}
}

func (e *engine) fetch(_ context.Context, _, path string, _ http.Header) (*http.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, path)
	if e.err != nil {
		return nil, e.err
	}
	body, ok := e.pages[path]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	if s := e.status[path]; s != 0 {
		status = s
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// change changes the engine under its lock.
func (e *engine) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

func (e *engine) takeAsked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := e.asked
	e.asked = nil
	return asked
}

func wantAsked(t *testing.T, e *engine, want ...string) {
	t.Helper()
	if got := e.takeAsked(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// reports collects what a poller hands on.
type reports struct {
	mu  sync.Mutex
	all map[string][]Report
}

func (r *reports) take(replica string, report Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[string][]Report)
	}
	r.all[replica] = append(r.all[replica], report)
}

func (r *reports) of(replica string) []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[replica])
}

// latest returns the latest report of a replica, which must have one.
func (r *reports) latest(t *testing.T, replica string) Report {
	t.Helper()
	all := r.of(replica)
	if len(all) == 0 {
		t.Fatalf("replica %s has no report", replica)
	}
	return all[len(all)-1]
}

func newPoller(t testing.TB, config Config) *Poller {
	t.Helper()
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}
