package module

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func init() {
	caddy.RegisterModule(new(probePolicy))
	caddy.RegisterModule(copyRequest{})
}

// probes are what the probePolicy modules of a config are connected to.
var probes sync.Map // name -> *probe

// probe is a test's end of a probePolicy.
type probe struct {
	limit  int64
	budget *bodyBudget
	health *healthWatch

	mu       sync.Mutex
	prefixes [][]byte
	complete []bool
	attempts []*recordedAttempt
}

func newProbe(t *testing.T, limit int64) *probe {
	p := &probe{limit: limit, budget: newBodyBudget(64 << 20)}
	probes.Store(t.Name(), p)
	t.Cleanup(func() { probes.Delete(t.Name()) })
	return p
}

// selected returns what Select saw, attempt by attempt.
func (p *probe) selected() (prefixes [][]byte, complete []bool, attempts []*recordedAttempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prefixes, p.complete, p.attempts
}

// awaitFreed fails the test unless all copies of bodies are given back.
func (p *probe) awaitFreed(t *testing.T) {
	t.Helper()
	awaitTrue(t, "all copies freed", func() bool { return p.budget.used.Load() == 0 })
}

// patience is longer than any slow machine takes; it only bounds a failing test.
const patience = time.Minute

func awaitTrue(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("still not: %s", what)
			return
		}
	}
}

// probePolicy reads the body ahead and takes the upstreams in turn, attempt by
// attempt; it watches the transport as the real policy does.
type probePolicy struct {
	Probe string `json:"probe"`
	probe *probe
}

func (*probePolicy) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.reverse_proxy.selection_policies.probe",
		New: func() caddy.Module { return new(probePolicy) },
	}
}

func (p *probePolicy) Provision(ctx caddy.Context) error {
	found, ok := probes.Load(p.Probe)
	if !ok {
		return fmt.Errorf("no probe %q", p.Probe)
	}
	p.probe = found.(*probe)
	modules := ctx.Modules()
	proxy := modules[len(modules)-2].(*reverseproxy.Handler)
	if proxy.Transport == nil {
		transport := new(reverseproxy.HTTPTransport)
		if err := transport.Provision(ctx); err != nil {
			return err
		}
		proxy.Transport = transport
	}
	observer := &transportObserver{responseBuffers: proxy.ResponseBuffers != 0, health: p.probe.health}
	proxy.Transport = observeTransport(proxy.Transport, observer)
	return nil
}

func (p *probePolicy) Select(pool reverseproxy.UpstreamPool, r *http.Request, _ http.ResponseWriter) *reverseproxy.Upstream {
	body := openBody(r, p.probe.limit, p.probe.budget)
	a := new(recordedAttempt)
	p.probe.mu.Lock()
	p.probe.prefixes = append(p.probe.prefixes, append([]byte{}, body.Prefix()...))
	p.probe.complete = append(p.probe.complete, body.Complete())
	p.probe.attempts = append(p.probe.attempts, a)
	p.probe.mu.Unlock()
	turnVar := fmt.Sprintf("probe.turn.%p", p)
	turn, _ := caddyhttp.GetVar(r.Context(), turnVar).(int)
	caddyhttp.SetVar(r.Context(), turnVar, turn+1)
	if turn >= len(pool) {
		return nil
	}
	setAttempt(r, a)
	return pool[turn]
}

// recordedAttempt is an attempt that notes what it hears.
type recordedAttempt struct {
	mu      sync.Mutex
	calls   []string
	status  int
	last    usage
	failure error
}

func (a *recordedAttempt) note(call string, set func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
	set()
}

func (a *recordedAttempt) headers(status int, _ http.Header, _ time.Time) {
	a.note("headers", func() { a.status = status })
}
func (a *recordedAttempt) firstToken(time.Time) { a.note("firstToken", func() {}) }
func (a *recordedAttempt) identified(string)    {}
func (a *recordedAttempt) usage(u usage)        { a.note("usage", func() { a.last = u }) }
func (a *recordedAttempt) ended(time.Time)      { a.note("ended", func() {}) }
func (a *recordedAttempt) failed(err error, _ time.Time) {
	a.note("failed", func() { a.failure = err })
}

func (a *recordedAttempt) error() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

func (a *recordedAttempt) heard() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.calls...)
}

// copyRequest hands a copy of the request on, as tracing does.
type copyRequest struct{}

func (copyRequest) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.copy_request",
		New: func() caddy.Module { return new(copyRequest) },
	}
}

func (copyRequest) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r.WithContext(r.Context()))
}

// object is JSON in the making.
type object = map[string]any

// runCaddy runs a real Caddy with one server and returns its address. Of the
// server's settings listen is filled in.
func runCaddy(t *testing.T, server object) string {
	t.Helper()
	server["listen"] = []string{"127.0.0.1:0"}
	server["automatic_https"] = object{"disable": true}
	config, err := json.Marshal(object{
		"admin":   object{"disabled": true, "config": object{"persist": false}},
		"logging": object{"logs": object{"default": object{"writer": object{"output": "discard"}}}},
		"storage": object{"module": "file_system", "root": t.TempDir()},
		"apps":    object{"http": object{"grace_period": "2s", "servers": object{"test": server}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	return app.(*caddyhttp.App).Servers["test"].Listeners()[0].Addr().String()
}

// proxyTo returns a reverse_proxy handler that uses the test's probe.
func proxyTo(t *testing.T, upstreams ...string) object {
	pool := make([]object, len(upstreams))
	for i, address := range upstreams {
		pool[i] = object{"dial": address}
	}
	return object{
		"handler":        "reverse_proxy",
		"upstreams":      pool,
		"load_balancing": object{"selection_policy": object{"policy": "probe", "probe": t.Name()}},
	}
}

// route returns the routes of a server or error handler that runs handlers.
func route(handlers ...object) []object {
	return []object{{"handle": handlers}}
}

// engineRequest is what an engine received.
type engineRequest struct {
	method   string
	header   http.Header
	length   int64
	encoding []string
	body     []byte
	trailer  http.Header
	err      error
}

// engine is a replica that keeps what it received.
type engine struct {
	address  string
	requests chan engineRequest
	count    atomic.Int64
}

// runEngine runs an engine that reads each request whole and then answers; a
// nil answer stands for 200 with a short JSON text.
func runEngine(t *testing.T, answer http.HandlerFunc) *engine {
	e := &engine{requests: make(chan engineRequest, 100)}
	e.address = serve(t, func(w http.ResponseWriter, r *http.Request) {
		e.count.Add(1)
		body, err := io.ReadAll(r.Body)
		e.requests <- engineRequest{r.Method, r.Header, r.ContentLength, r.TransferEncoding, body, r.Trailer, err}
		if answer != nil {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":3,"completion_tokens":1}}`)
	})
	return e
}

// serve runs an HTTP server on loopback and returns its address.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// received returns the one request an engine got.
func (e *engine) received(t *testing.T) engineRequest {
	t.Helper()
	select {
	case r := <-e.requests:
		return r
	case <-time.After(patience):
		t.Fatal("engine received nothing")
		return engineRequest{}
	}
}
