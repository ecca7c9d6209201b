package module

import (
	"fmt"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"
)

// newTestWatch returns the watch of a policy in handler that never asks.
func newTestWatch(t testing.TB, handler *reverseproxy.Handler) *loadWatch {
	t.Helper()
	state, err := newState(minIndexMemory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Destruct() })
	c := &CacheAware{state: state, logger: zap.NewNop()}
	w, err := c.newLoadWatch(handler, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	return w
}

func poolOf(dials ...string) (pool reverseproxy.UpstreamPool) {
	for _, dial := range dials {
		pool = append(pool, &reverseproxy.Upstream{Dial: dial, Host: new(reverseproxy.Host)})
	}
	return pool
}

// asked lists which of the given upstreams are asked for their load.
func (w *loadWatch) asked(dials ...string) string {
	var found []string
	for _, dial := range dials {
		if _, ok := w.poller.Status(dial); ok {
			found = append(found, dial)
		}
	}
	return fmt.Sprint(found)
}

func TestStaticUpstreamsAreAsked(t *testing.T) {
	t.Setenv("ENGINE_HOST", "10.0.0.9")
	dials := []string{"10.0.0.1:80", "unix//run/engine.sock", "{env.ENGINE_HOST}:80", "{env.NO_SUCH}:80", "{http.request.host}:80", "10.0.0.2:80-81", "10.0.0.1:80"}
	w := newTestWatch(t, &reverseproxy.Handler{Upstreams: poolOf(dials...)})
	if got, want := w.asked(dials[:6]...), fmt.Sprint(dials[:3]); got != want {
		t.Errorf("asked are %s, want %s", got, want)
	}
	w.see(poolOf("10.0.0.3:80"), time.Unix(1000, 0))
	if got := w.asked("10.0.0.3:80"); got != "[]" {
		t.Errorf("without a source of dynamic upstreams asked are %s", got)
	}
}

func dynamicHandler(static ...string) *reverseproxy.Handler {
	return &reverseproxy.Handler{Upstreams: poolOf(static...), DynamicUpstreamsRaw: []byte(`{}`)}
}

func TestDynamicUpstreamsAreAskedWhileTheyAreSeen(t *testing.T) {
	w := newTestWatch(t, dynamicHandler("s:1"))
	now := time.Unix(1000, 0)
	for _, step := range []struct {
		after time.Duration
		pool  []string
		want  string
	}{
		{0, []string{"a:1", "b:1"}, "[s:1 a:1 b:1]"},
		{lookInterval / 2, []string{"c:1"}, "[s:1 a:1 b:1]"}, // not looked at
		{lookInterval, []string{"a:1", "s:1"}, "[s:1 a:1 b:1]"},
		{absence - 2*lookInterval, []string{"a:1", "b:1"}, "[s:1 a:1 b:1]"},
		{absence, []string{"a:1", "d:1"}, "[s:1 a:1 b:1 d:1]"},
		{2 * lookInterval, []string{"a:1"}, "[s:1 a:1 d:1]"},
		{2 * absence, []string{"b:1"}, "[s:1 b:1]"},
	} {
		now = now.Add(step.after)
		w.see(poolOf(step.pool...), now)
		if got := w.asked("s:1", "a:1", "b:1", "c:1", "d:1"); got != step.want {
			t.Errorf("after %s asked are %s, want %s", now.Sub(time.Unix(1000, 0)), got, step.want)
		}
	}
}

func TestDynamicUpstreamsAreBounded(t *testing.T) {
	w := newTestWatch(t, dynamicHandler())
	for i := range 2 * maxDynamic / 100 {
		var dials []string
		for j := range 100 {
			dials = append(dials, fmt.Sprintf("10.0.%d.%d:80", i, j))
		}
		w.see(poolOf(dials...), time.Unix(1000, 0).Add(time.Duration(i)*lookInterval))
	}
	if n := len(w.poller.Statuses()); n != maxDynamic {
		t.Errorf("%d upstreams are asked, want at most %d", n, maxDynamic)
	}
}

func TestSeeingNothingNewAllocatesNothing(t *testing.T) {
	pool := poolOf("a:1", "b:1", "c:1")
	for name, w := range map[string]*loadWatch{
		"static":  newTestWatch(t, &reverseproxy.Handler{Upstreams: pool}),
		"dynamic": newTestWatch(t, dynamicHandler()),
		"none":    nil,
	} {
		now := time.Unix(1000, 0)
		w.see(pool, now)
		if n := testing.AllocsPerRun(100, func() {
			now = now.Add(lookInterval / 3)
			w.see(pool, now)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkSee(b *testing.B) {
	w := newTestWatch(b, dynamicHandler())
	pool, now := poolOf("a:1", "b:1"), time.Unix(1000, 0)
	w.see(pool, now)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.see(pool, now)
		}
	})
}

func TestHealthEventsFindTheirUpstreams(t *testing.T) {
	checks := func(active *reverseproxy.ActiveHealthChecks) *reverseproxy.HealthChecks {
		return &reverseproxy.HealthChecks{Active: active}
	}
	for name, test := range map[string]struct {
		checks *reverseproxy.HealthChecks
		host   any
		want   string
	}{
		"address":             {nil, "10.0.0.1:80", "[10.0.0.1:80]"},
		"network and address": {nil, "10.0.0.2:80", "[tcp/10.0.0.2:80]"},
		"socket":              {nil, "localhost", "[unix//run/engine.sock]"},
		"dynamic":             {nil, "dynamic:80", "[dynamic:80]"},
		"foreign":             {nil, "10.0.0.3:80", "[]"},
		"no text":             {nil, 7, "[]"},
		"nothing":             {nil, nil, "[]"},
		"other port":          {checks(&reverseproxy.ActiveHealthChecks{Port: 99}), "10.0.0.1:99", "[10.0.0.1:80]"},
		"its own port":        {checks(&reverseproxy.ActiveHealthChecks{Port: 99}), "10.0.0.1:80", "[10.0.0.1:80]"},
		"upstream wins over port": {
			checks(&reverseproxy.ActiveHealthChecks{Port: 99, Upstream: "checker:80"}), "10.0.0.1:99", "[]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			handler := dynamicHandler("10.0.0.1:80", "tcp/10.0.0.2:80", "unix//run/engine.sock")
			handler.HealthChecks = test.checks
			w := newTestWatch(t, handler)
			w.see(poolOf("dynamic:80"), time.Unix(1000, 0))
			if got := fmt.Sprint(w.upstreamsOf(map[string]any{"host": test.host})); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestUnhealthyReplicasAreDoubted(t *testing.T) {
	w := newTestWatch(t, &reverseproxy.Handler{Upstreams: poolOf("a:1", "b:1")})
	for _, replica := range []string{"a:1", "b:1", "foreign:1"} {
		report := reportOfNothing()
		w.fleet.Report(time.Now(), replica, &report)
	}
	for _, host := range []string{"a:1", "foreign:1"} {
		w.unhealthy(map[string]any{"host": host})
	}
	for _, s := range w.fleet.Status(time.Now()) {
		if s.Doubted != (s.Replica == "a:1") {
			t.Errorf("%s: doubted %t", s.Replica, s.Doubted)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Setenv("ENGINE_HOST", "10.0.0.9")
	for dial, want := range map[string]string{
		"10.0.0.1:80":           "10.0.0.1:80",
		"[::1]:80":              "[::1]:80",
		"udp/10.0.0.1:80":       "10.0.0.1:80",
		"unix//run/engine.sock": "/run/engine.sock",
		"{env.ENGINE_HOST}:80":  "10.0.0.9:80",
		"{env.NO_SUCH}:80":      "",
		"{http.request.host}":   "",
		"10.0.0.1:80-90":        "",
		"10.0.0.1:http":         "",
	} {
		address, err := resolve(dial, caddy.NewReplacer())
		if (err != nil) != (want == "") || err == nil && address.JoinHostPort(0) != want {
			t.Errorf("%s: got %s, error %v; want %q", dial, address.JoinHostPort(0), err, want)
		}
	}
}
