package integration

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/proxy"
	"github.com/seed5db0839e/caddy-cache-aware/internal/loopback"
	"github.com/seed5db0839e/caddy-cache-aware/internal/refuse"
)

// exchange is a request as a client sends it, and the proxy on its way.
type exchange struct {
	method  string // default POST
	path    string // default /v1/chat/completions
	body    string
	chunked bool                // sent without its length
	pause   time.Duration       // between the pieces of a slow upload
	change  func(*http.Request) // further headers and trailers
	client  func(*testing.T) http.RoundTripper
	raw     func(t *testing.T, address string) string // instead of all of the above

	site     string // directives before the proxy
	handler  string // directives of reverse_proxy
	global   string // global options
	policy   string // with %s for the policy that is tested; default "lb_policy %s"
	after    string // directives after the proxy, with %s for the recorders
	failures []failure
	dead     int  // upstreams that refuse connections; the recorders then are the others
	tls      bool // the proxy is reached over TLS

	// replayed marks retries for which least_conn must buffer the body, and so
	// compares with what it sends when nothing fails.
	replayed   bool
	wantStatus int  // default 200
	wantBroken bool // no engine may take what it gets for a whole request
}

// maxPrompt is little, so that short bodies are longer.
const maxPrompt = 64 << 10

const tested = "cache_aware {\nexplain\nmax_prompt 64KiB\nsession_header X-Session\nisolate_by {http.request.header.Authorization}\n}"

// What engines receive, and clients get back, does not depend on the policy.
func TestEnginesReceiveWhatLeastConnSends(t *testing.T) {
	groups := []map[string]exchange{
		plainExchanges, codedExchanges, longExchanges, proxyExchanges, retryExchanges, protocolExchanges, rawExchanges,
	}
	for _, group := range groups {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { group[name].compare(t) })
		}
	}
}

// outcome is what a client and the engines saw of an exchange.
type outcome struct {
	answer  string
	arrived []arrival
}

func (e exchange) compare(t *testing.T) {
	baseline := e
	if e.replayed {
		baseline.failures, baseline.dead = nil, 0
	}
	want := baseline.run(t, "least_conn")
	got := e.run(t, tested)
	status := fmt.Sprint(max(e.wantStatus, 200))
	if e.raw == nil && !strings.HasPrefix(want.answer, status) {
		t.Fatalf("with least_conn the client got %q, want status %s", want.answer, status)
	}
	if got.answer != want.answer {
		t.Errorf("client got  %.300q\nleast_conn: %.300q", got.answer, want.answer)
	}
	if e.wantBroken || e.wantStatus >= 400 {
		for _, a := range got.arrived {
			if !a.Broken {
				t.Errorf("an engine took %d bytes for a whole request", len(a.Body))
			}
		}
		return // how much of it arrives is a matter of luck
	}
	if !reflect.DeepEqual(got.arrived, want.arrived) {
		t.Errorf("engine got  %.900s\nleast_conn: %.900s", fmt.Sprintf("%+v", got.arrived), fmt.Sprintf("%+v", want.arrived))
	}
	if len(want.arrived) != 1 {
		t.Errorf("%d requests arrived", len(want.arrived))
	}
}

// run sends the request through a proxy with the policy.
func (e exchange) run(t *testing.T, policy string) outcome {
	t.Helper()
	r := startRecorders(t, 2)
	r.plan(e.failures)
	p := e.start(t, r, policy)
	var out outcome
	if e.raw != nil {
		out.answer = e.raw(t, strings.TrimPrefix(p.URL, "http://"))
	} else {
		out.answer = e.send(t, p.URL)
	}
	if err := proxy.Stop(); err != nil {
		t.Error(err)
	}
	out.arrived = r.take()
	for i := range out.arrived { // the only thing that tells one run from the other
		for _, address := range r.addresses {
			out.arrived[i].Head = strings.ReplaceAll(out.arrived[i].Head, address, "upstream")
		}
		out.arrived[i].Head = strings.ReplaceAll(out.arrived[i].Head, p.URL[strings.Index(p.URL, "//")+2:], "proxy")
	}
	return out
}

func (e exchange) start(t *testing.T, r *recorders, policy string) *proxy.Proxy {
	t.Helper()
	pool := slices.Clone(r.addresses)
	for range e.dead {
		pool = append(pool, refuse.Address(t))
	}
	if strings.Contains(e.after, "%s") {
		pool = pool[len(r.addresses):]
		e.after = fmt.Sprintf(e.after, r.addresses[0])
	}
	if e.policy == "" {
		e.policy = "lb_policy %s"
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	o := proxy.Options{Address: address, Global: e.global, Site: fmt.Sprintf("%s\nreverse_proxy %s {\n%s\n%s\n}\n%s\n",
		e.site, strings.Join(pool, " "), fmt.Sprintf(e.policy, policy), e.handler, e.after)}
	if e.tls {
		o.Scheme = "https"
		o.Site += certificate(t)
	}
	p, err := proxy.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends the request with an ordinary client and returns the answer as text.
func (e exchange) send(t *testing.T, url string) string {
	t.Helper()
	request := e.request(t, url)
	transport := http.RoundTripper(&http.Transport{ExpectContinueTimeout: 5 * time.Second, DisableKeepAlives: true})
	if e.client != nil {
		transport = e.client(t)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, response.Header["Content-Type"], response.ContentLength, " ", string(body))
}

func (e exchange) request(t *testing.T, url string) *http.Request {
	t.Helper()
	method, path := http.MethodPost, "/v1/chat/completions"
	if e.method != "" {
		method = e.method
	}
	if e.path != "" {
		path = e.path
	}
	var body io.Reader
	if e.body != "" || e.chunked {
		body = strings.NewReader(e.body)
	}
	if e.chunked {
		body = &pieces{body, e.pause}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if e.pause > 0 && !e.chunked {
		request.Body = io.NopCloser(&pieces{request.Body, e.pause})
	}
	request.Header.Set(marker, "1")
	request.Header.Set("Content-Type", "application/json")
	if e.change != nil {
		e.change(request)
	}
	return request
}

// pieces yields a body in pieces, and hides its length.
type pieces struct {
	io.Reader
	pause time.Duration
}

func (p *pieces) Read(b []byte) (int, error) {
	time.Sleep(p.pause)
	return p.Reader.Read(b[:min(len(b), 20_000)])
}
