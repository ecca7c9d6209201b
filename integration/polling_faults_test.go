package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// faultyPage is a replica that answers requests well and for its load does
// what a test wants.
type faultyPage struct {
	address string
	asked   atomic.Int64
	written atomic.Int64 // bytes of load pages
}

func startFaultyPage(t *testing.T, page func(http.ResponseWriter, *http.Request)) *faultyPage {
	f := new(faultyPage)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case chatPath:
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":100,"completion_tokens":1}}`)
		case "/metrics":
			f.asked.Add(1)
			page(&countingWriter{w, &f.written}, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	f.address = server.Listener.Addr().String()
	return f
}

type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes.Add(int64(n))
	return n, err
}

func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const goodPage = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"

// repeat writes a line until it has written so many bytes or the reader leaves.
func repeat(line string, bytes int, pause time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		for n := 0; n < bytes && r.Context().Err() == nil; n += len(line) {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
			if pause > 0 {
				_ = http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
		}
	}
}

var faultyPages = map[string]struct {
	page func(http.ResponseWriter, *http.Request)
	good bool
}{
	"hung":    {page: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	"500":     {page: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, goodPage, 500) }},
	"garbage": {page: repeat("\x00\xff{{{\n", 10_000, 0)},
	"100 MB":  {page: repeat(strings.Repeat("vllm:other 1\n", 1000), 100_000_000, 0)},
	"slow":    {page: repeat("\n", 1000, 100*time.Millisecond)},
	"broken off": {page: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99")
		_, _ = io.WriteString(w, "x")
	}},
	"lies about gzip": {page: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, goodPage)
	}},
	"wrong content type": {good: true, page: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, goodPage)
	}},
}

// TestFaultyLoadPagesHarmNoRequest has a replica of each fault beside a good
// one, under traffic.
func TestFaultyLoadPagesHarmNoRequest(t *testing.T) {
	logs := filepath.Join(t.TempDir(), "log")
	r := &rig{t: t, options: often, global: "log {\noutput file " + logs + "\nformat json\n}"}
	e, err := engine.Start(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	r.engines = append(r.engines, e)
	replicas := make(map[string]*faultyPage)
	for name, fault := range faultyPages {
		replicas[name] = startFaultyPage(t, fault.page)
		r.others = append(r.others, replicas[name].address)
	}
	r.start()
	got := make(map[string]int)
	foundOut := func() bool {
		for name, f := range replicas {
			s := loadOf(f.address)
			if s.Failures < 2 && !(faultyPages[name].good && !s.Report.At.IsZero()) {
				return false
			}
		}
		return true
	}
	for wave := 0; wave < 10 || wave < 1000 && !foundOut(); wave++ {
		for _, a := range r.sendAll(distinct(wave*32, 32, 300)) {
			if a.Status != 200 || a.Err != nil {
				t.Errorf("answer: %+v", a)
			}
			got[a.Replica]++
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !foundOut() {
		t.Fatal("not all faults have been found out")
	}
	lines := readLines(t, logs)
	for name, f := range replicas {
		if got[f.address] == 0 {
			t.Errorf("%s: the replica gets no requests of %v", name, got)
		}
		// A page may be read up to 4 MiB; the rest is what sockets hold.
		if most := f.asked.Load() * (16 << 20); f.written.Load() > most {
			t.Errorf("%s: %d bytes were sent in %d polls", name, f.written.Load(), f.asked.Load())
		}
		want := "[replica does not report its load]"
		if faultyPages[name].good {
			want = "[replica reports its load]"
		}
		if said := fmt.Sprint(lines[f.address]); said != want {
			t.Errorf("%s: %d polls, and logged is %s, want %s", name, f.asked.Load(), said, want)
		}
	}
}

// readLines returns the messages of a log by the replica that they are about.
func readLines(t *testing.T, name string) map[string][]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := make(map[string][]string)
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var line struct{ Msg, Replica string }
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Replica != "" {
			lines[line.Replica] = append(lines[line.Replica], line.Msg)
		}
	}
	return lines
}
