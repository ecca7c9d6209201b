package module

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/internal/refuse"
)

// A proxy in handle_errors gets the body whole after ours has read it ahead
// and reached no replica, in every way that works without reading ahead.
func TestFallbackGetsBody(t *testing.T) {
	short, long := randomBytes(20_000), randomBytes(1_000_000)
	first := func(handlers ...object) func(object) object {
		return func(proxy object) object { return object{"routes": route(append(handlers, proxy)...)} }
	}
	cases := map[string]bodyCase{
		"sized":               {body: short, server: first()},
		"chunked":             {body: short, chunked: true, server: first()},
		"over limit":          {body: long, server: first()},
		"over limit, chunked": {body: long, chunked: true, server: first()},
		"h2":                  {body: short, client: h2Client, server: first()},
		"access log":          {body: short, server: withLogs},
		"trailer":             {body: short, chunked: true, change: withTrailer, server: first()},
		"max_size":            {body: short, chunked: true, server: first(object{"handler": "request_body", "max_size": 20_000})},
		"copied request":      {body: short, chunked: true, server: first(object{"handler": "copy_request"})},
		"inside a subroute": {body: short, server: func(proxy object) object {
			return object{"routes": route(object{"handler": "subroute", "routes": route(proxy)})}
		}},
	}
	fallbacks := map[string]func(t *testing.T, e *engine) object{
		"plain": func(t *testing.T, e *engine) object {
			return object{"handler": "reverse_proxy", "upstreams": []object{{"dial": e.address}}}
		},
		"ours": func(t *testing.T, e *engine) object {
			proxy := proxyTo(t, refuse.Address(t), e.address)
			proxy["load_balancing"].(object)["retries"] = 1
			return proxy
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		for kind, fallback := range fallbacks {
			t.Run(name+"/"+kind, func(t *testing.T) {
				c := cases[name]
				p := newProbe(t, probeLimit)
				e := runEngine(t, nil)
				inner := c.server
				c.server = func(proxy object) object {
					s := inner(proxy)
					s["errors"] = object{"routes": route(fallback(t, e))}
					return s
				}
				plain := proxyTo(t, refuse.Address(t))
				plain["load_balancing"] = object{"selection_policy": object{"policy": "least_conn"}}
				want := c.run(t, e, plain)
				p.awaitFreed(t)
				ours := proxyTo(t, refuse.Address(t), refuse.Address(t))
				ours["load_balancing"].(object)["retries"] = 1
				c.check(t, c.run(t, e, ours), want)
				p.awaitFreed(t)
			})
		}
	}
}

// A replica that answers early, before it has read the body, leaves the body's
// memory alone until the transport has finished with it.
func TestEarlyAnswer(t *testing.T) {
	p := newProbe(t, 1<<20)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "no")
	})
	caddy := runCaddy(t, object{"routes": route(proxyTo(t, address))})
	sent := randomBytes(1 << 20)
	for range 20 {
		res := post(t, caddy, bytes.NewReader(sent))
		if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 401 || string(answer) != "no" {
			t.Errorf("got %d %q, %v", res.StatusCode, answer, err)
		}
	}
	p.awaitFreed(t)
}
