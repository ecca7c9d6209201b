package module

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/internal/refuse"
)

// runBrokenEngine runs an engine that reads n bytes of a body and then drops
// the connection.
func runBrokenEngine(t *testing.T, n int64) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, n)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	})
}

// runBusyEngine runs an engine that reads the body and answers 503.
func runBusyEngine(t *testing.T) string {
	return runEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}).address
}

// retryCase is a request whose first attempts fail.
type retryCase struct {
	body    []byte
	chunked bool
	failing func(*testing.T) []string
	proxy   object
	server  func(proxy object) object

	wantStatus int // default 200
}

func dead(t *testing.T) []string   { return []string{refuse.Address(t), refuse.Address(t)} }
func busy(t *testing.T) []string   { return []string{runBusyEngine(t)} }
func broken(t *testing.T) []string { return []string{runBrokenEngine(t, 1000)} }
func deadBusy(t *testing.T) []string {
	return []string{refuse.Address(t), runBusyEngine(t), refuse.Address(t)}
}

var headerUp = object{"headers": object{"request": object{"set": object{"X-Up": []string{"1"}}}}}

func TestBodyIsReplayed(t *testing.T) {
	short, long := randomBytes(20_000), randomBytes(1_000_000)
	cases := map[string]retryCase{
		"dial error":             {body: short, failing: dead},
		"dial error, chunked":    {body: short, chunked: true, failing: dead},
		"dial error, over limit": {body: long, failing: dead},
		"dial error, buffered":   {body: short, failing: dead, proxy: object{"request_buffers": 1 << 20}},
		"dial error, header_up":  {body: short, failing: dead, proxy: headerUp},
		"dial error, buffers too small": {
			body: short, failing: dead, proxy: object{"request_buffers": 1000},
		},
		"dial error, no idle timeout": {body: short, failing: dead, server: withoutIdleTimeout},
		"dial error, no idle timeout, over limit": {
			body: long, chunked: true, failing: dead, server: withoutIdleTimeout,
		},
		"dial error, max_size kept": {body: short, failing: dead, server: maxSize(20_000)},
		"dial error, max_size broken": {
			body: short, chunked: true, failing: dead, server: maxSize(19_999), wantStatus: 413,
		},
		"503":                      {body: short, failing: busy},
		"503, chunked":             {body: short, chunked: true, failing: busy},
		"503, buffered":            {body: short, failing: busy, proxy: object{"request_buffers": 1 << 20}},
		"503, response buffers":    {body: short, failing: busy, proxy: object{"response_buffers": 1 << 10}},
		"503, header_up":           {body: short, failing: busy, proxy: headerUp},
		"503, no idle timeout":     {body: short, failing: busy, server: withoutIdleTimeout},
		"503, over limit":          {body: long, failing: busy, wantStatus: 502},
		"503, over limit, chunked": {body: long, chunked: true, failing: busy, wantStatus: 502},
		"503, max_size kept":       {body: short, chunked: true, failing: busy, server: maxSize(20_000)},
		"dead, 503, dead":          {body: short, failing: deadBusy},
		"dropped":                  {body: short, failing: broken},
		"dropped, chunked":         {body: short, chunked: true, failing: broken},
		"dropped, no idle timeout": {body: short, failing: broken, server: withoutIdleTimeout},
		"dropped, max_size broken": {
			body: short, chunked: true, failing: broken, server: maxSize(19_999), wantStatus: 413,
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			c := cases[name]
			p := newProbe(t, probeLimit)
			e := runEngine(t, nil)
			failing := c.failing(t)
			proxy := proxyTo(t, append(failing, e.address)...)
			balancing := proxy["load_balancing"].(object)
			balancing["retries"] = len(failing)
			balancing["retry_match"] = []object{
				{"expression": "{http.reverse_proxy.status_code} == 503"}, {"method": []string{"POST"}},
			}
			status := c.run(t, proxy)
			if want := max(c.wantStatus, 200); status != want {
				t.Errorf("status %d, want %d", status, want)
			}
			if status == 200 {
				if got := e.received(t); !bytes.Equal(got.body, c.body) || got.err != nil {
					t.Errorf("engine got %d bytes, %v; want %d", len(got.body), got.err, len(c.body))
				}
			} else if n := e.count.Load(); n > 0 && e.received(t).err == nil {
				t.Error("engine got a truncated request that looks whole")
			}
			p.awaitFreed(t)
			prefixes, _, attempts := p.selected()
			if err := attempts[len(attempts)-1].error(); errors.Is(err, errRequestBody) != (status == 413) {
				t.Errorf("status %d, failure %v", status, err)
			}
			for i, prefix := range prefixes {
				if status == 200 && !bytes.Equal(prefix, c.body[:min(len(c.body), probeLimit)]) {
					t.Errorf("attempt %d: prefix of %d bytes", i+1, len(prefix))
				}
			}
		})
	}
}

func (c retryCase) run(t *testing.T, proxy object) int {
	maps.Copy(proxy, c.proxy)
	server := object{"routes": route(proxy)}
	if c.server != nil {
		server = c.server(proxy)
	}
	var body io.Reader = bytes.NewReader(c.body)
	if c.chunked {
		body = unsized{body}
	}
	res := post(t, runCaddy(t, server), body)
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// runForgetfulEngine runs an engine that answers one request on each connection
// and closes it instead of answering the next one. It counts its answers.
func runForgetfulEngine(t *testing.T, want []byte) (address string, answered *atomic.Int64) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	answered = new(atomic.Int64)
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for first := true; ; first = false {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, want) {
				t.Errorf("engine got %d bytes, %v", len(got), err)
			}
			if !first {
				return
			}
			answered.Add(1)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String(), answered
}

// The HTTP client inside the proxy can send a body again on its own, where a
// connection that it kept turns out to be closed and the client allows it.
func TestBodyIsReplayedOnAnotherConnection(t *testing.T) {
	sent := randomBytes(20_000)
	p := newProbe(t, probeLimit)
	address, answered := runForgetfulEngine(t, sent)
	caddy := runCaddy(t, object{"routes": route(proxyTo(t, address))})
	for i := range 3 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+caddy, bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "1")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 200 || answered.Load() != int64(i+1) {
			t.Errorf("request %d: status %d, %d answered", i, res.StatusCode, answered.Load())
		}
	}
	p.awaitFreed(t)
}
