package module

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"
)

func randomBytes(n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = random.Read(b)
	return b
}

// unsized hides a reader's length, so that the client sends chunks.
type unsized struct{ io.Reader }

// withTrailer announces a trailer and sets it at the body's end.
func withTrailer(r *http.Request) {
	r.Trailer = http.Header{"X-Checksum": nil}
	body := r.Body
	r.ContentLength = -1
	r.Body = &endingBody{body, func() { r.Trailer.Set("X-Checksum", "42") }}
}

type endingBody struct {
	io.ReadCloser
	atEnd func()
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.atEnd()
	}
	return n, err
}

const probeLimit = 64 << 10

// bodyCase is a request as a client sends it and a server that it goes
// through.
type bodyCase struct {
	method  string
	body    []byte
	chunked bool
	change  func(*http.Request)
	proxy   object                    // added to the reverse_proxy handler
	server  func(proxy object) object // default: only the proxy
	client  func() http.RoundTripper

	wantStatus int // default 200
	unread     bool
}

var bodyCases = map[string]bodyCase{
	"empty":              {},
	"tiny":               {body: []byte("x")},
	"short":              {body: randomBytes(2000)},
	"long":               {body: randomBytes(60_000)},
	"as long as limit":   {body: randomBytes(probeLimit)},
	"longer than limit":  {body: randomBytes(300_000)},
	"chunked empty":      {chunked: true},
	"chunked short":      {body: randomBytes(2000), chunked: true},
	"chunked long":       {body: randomBytes(60_000), chunked: true},
	"chunked as limit":   {body: randomBytes(probeLimit), chunked: true},
	"chunked over limit": {body: randomBytes(300_000), chunked: true},
	"trailer":            {body: randomBytes(2000), chunked: true, change: withTrailer},
	"trailer over limit": {body: randomBytes(300_000), chunked: true, change: withTrailer},
	"get":                {method: http.MethodGet, unread: true},
	"get with body":      {method: http.MethodGet, body: randomBytes(2000), unread: true},
	"head":               {method: http.MethodHead, unread: true},
	"options":            {method: http.MethodOptions, unread: true},
	"delete with body":   {method: http.MethodDelete, body: randomBytes(2000)},
	"incremental": {body: randomBytes(2000), unread: true, change: func(r *http.Request) {
		r.Header.Set("Incremental", "?1")
	}},
	"expect continue": {body: randomBytes(2000), change: func(r *http.Request) {
		r.Header.Set("Expect", "100-continue")
	}},
	"gzip label": {body: randomBytes(2000), change: func(r *http.Request) {
		r.Header.Set("Content-Encoding", "gzip")
	}},
	"h2 sized":         {body: randomBytes(60_000), client: h2Client},
	"h2 unsized":       {body: randomBytes(60_000), chunked: true, client: h2Client},
	"h2 over limit":    {body: randomBytes(300_000), client: h2Client},
	"h2 trailer":       {body: randomBytes(2000), chunked: true, change: withTrailer, client: h2Client},
	"buffered":         {body: randomBytes(60_000), proxy: object{"request_buffers": 1 << 20}},
	"buffered chunked": {body: randomBytes(60_000), chunked: true, proxy: object{"request_buffers": 1 << 20}},
	"buffered part":    {body: randomBytes(60_000), proxy: object{"request_buffers": 1 << 10}},
	"buffered part, over limit": {
		body: randomBytes(300_000), proxy: object{"request_buffers": 1 << 10},
	},
	"rewritten to get": {
		body: randomBytes(2000), unread: true, proxy: object{"rewrite": object{"method": "GET"}},
	},
	"max_size kept":            {body: randomBytes(2000), server: maxSize(2000)},
	"max_size kept, chunked":   {body: randomBytes(2000), chunked: true, server: maxSize(2000)},
	"max_size broken":          {body: randomBytes(2001), server: maxSize(2000), wantStatus: 413},
	"max_size broken, chunked": {body: randomBytes(2001), chunked: true, server: maxSize(2000), wantStatus: 413},
	"max_size beyond limit": {
		body: randomBytes(300_000), chunked: true, server: maxSize(200_000), wantStatus: 413,
	},
	"max_size, buffered": {
		body: randomBytes(2001), chunked: true, server: maxSize(2000), wantStatus: 413,
		proxy: object{"request_buffers": 1 << 20},
	},
	"access log":      {body: randomBytes(2000), server: withLogs},
	"no idle timeout": {body: randomBytes(60_000), server: withoutIdleTimeout},
	"no idle timeout, over limit": {
		body: randomBytes(300_000), chunked: true, server: withoutIdleTimeout,
	},
	"no idle timeout, max_size": {
		body: randomBytes(3000), chunked: true, wantStatus: 413,
		server: func(proxy object) object {
			s := withoutIdleTimeout(proxy)
			s["routes"] = route(object{"handler": "request_body", "max_size": 2000}, proxy)
			return s
		},
	},
	"body read by a placeholder": {
		body: randomBytes(2000), server: func(proxy object) object {
			return object{"routes": route(object{"handler": "vars", "seen": "{http.request.body}"}, proxy)}
		},
	},
}

func maxSize(n int) func(object) object {
	return func(proxy object) object {
		return object{"routes": route(object{"handler": "request_body", "max_size": n}, proxy)}
	}
}

func withLogs(proxy object) object {
	return object{"routes": route(proxy), "logs": object{}}
}

func withoutIdleTimeout(proxy object) object {
	return object{"routes": route(proxy), "read_idle_timeout": -1}
}

// The engine and the client see the same with the body read ahead as without.
func TestBodyArrivesAsSent(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(bodyCases)) {
		t.Run(name, func(t *testing.T) {
			c := bodyCases[name]
			p := newProbe(t, probeLimit)
			e := runEngine(t, nil)
			plain := proxyTo(t, e.address)
			plain["load_balancing"] = object{"selection_policy": object{"policy": "least_conn"}}
			want := c.run(t, e, plain)
			got := c.run(t, e, proxyTo(t, e.address))
			c.check(t, got, want)
			p.awaitFreed(t)

			prefixes, complete, _ := p.selected()
			wantPrefix := c.body[:min(len(c.body), probeLimit)]
			if c.unread {
				wantPrefix = nil
			}
			if want.status != 200 {
				return
			}
			if !bytes.Equal(prefixes[0], wantPrefix) {
				t.Errorf("prefix of %d bytes, want %d", len(prefixes[0]), len(wantPrefix))
			}
			if whole := c.unread || len(c.body) < probeLimit; whole && !complete[0] {
				t.Error("body is not complete")
			}
		})
	}
}

// bodyOutcome is what client and engine saw of a case.
type bodyOutcome struct {
	status int
	answer []byte
	engine []engineRequest
}

func (c bodyCase) run(t *testing.T, e *engine, proxy object) bodyOutcome {
	maps.Copy(proxy, c.proxy)
	server := object{"routes": route(proxy)}
	if c.server != nil {
		server = c.server(proxy)
	}
	server["protocols"] = []string{"h1", "h2c"}
	res := c.send(t, runCaddy(t, server))
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	out := bodyOutcome{status: res.StatusCode, answer: answer}
	deadline := time.After(patience)
	for len(out.engine) < int(e.count.Load()) {
		select {
		case r := <-e.requests:
			out.engine = append(out.engine, r)
		case <-deadline:
			t.Fatal("engine did not finish")
		}
	}
	e.count.Store(0)
	return out
}

func (c bodyCase) send(t *testing.T, address string) *http.Response {
	var body io.Reader
	if c.body != nil || c.chunked {
		body = bytes.NewReader(c.body)
		if c.chunked {
			body = unsized{body}
		}
	}
	method := c.method
	if method == "" {
		method = http.MethodPost
	}
	return send(t, address, method, body, c.change, c.client)
}

// send sends a request to a Caddy and returns the answer.
func send(
	t *testing.T, address, method string, body io.Reader, change func(*http.Request), client func() http.RoundTripper,
) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+address+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "engines.test"
	if change != nil {
		change(req)
	}
	transport := http.RoundTripper(&http.Transport{ExpectContinueTimeout: time.Second, DisableKeepAlives: true})
	if client != nil {
		transport = client()
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func post(t *testing.T, address string, body io.Reader) *http.Response {
	t.Helper()
	return send(t, address, http.MethodPost, body, nil, nil)
}

// h2Client speaks HTTP/2 without TLS.
func h2Client() http.RoundTripper {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols, DisableKeepAlives: true}
}

func (c bodyCase) check(t *testing.T, got, want bodyOutcome) {
	t.Helper()
	wantStatus := 200
	if c.wantStatus != 0 {
		wantStatus = c.wantStatus
	}
	if got.status != wantStatus || want.status != wantStatus {
		t.Errorf("status %d, with least_conn %d, want %d", got.status, want.status, wantStatus)
	}
	if !bytes.Equal(got.answer, want.answer) {
		t.Errorf("answer %q, with least_conn %q", got.answer, want.answer)
	}
	if wantStatus != 200 {
		return // whether and how much of a refused body arrives is a matter of luck
	}
	if len(got.engine) != len(want.engine) {
		t.Fatalf("engine got %d requests, with least_conn %d", len(got.engine), len(want.engine))
	}
	for i, g := range got.engine {
		w := want.engine[i]
		if !bytes.Equal(g.body, w.body) || !bytes.Equal(g.body, c.wantBody()) {
			t.Errorf("engine got %d bytes, with least_conn %d", len(g.body), len(w.body))
		}
		g.body, w.body = nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Errorf("engine got\n%+v\nwith least_conn\n%+v", g, w)
		}
	}
}

func (c bodyCase) wantBody() []byte {
	if c.proxy["rewrite"] != nil {
		return nil
	}
	return c.body
}
