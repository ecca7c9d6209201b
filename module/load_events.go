package module

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// subscribe listens to Caddy's events. Asking for load begins when the
// configuration runs, so that validating one sends nothing.
func (w *loadWatch) subscribe(ctx caddy.Context) error {
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("getting events app: %w", err)
	}
	for event, react := range map[string]eventHandler{
		"started":   {func(map[string]any) { w.poller.Start() }},
		"unhealthy": {w.unhealthy},
		"healthy":   {w.healthy},
	} {
		if err := app.(*caddyevents.App).On(event, react); err != nil {
			return fmt.Errorf("subscribing to event %q: %w", event, err)
		}
	}
	return nil
}

// eventHandler passes the data of an event on.
type eventHandler struct{ react func(data map[string]any) }

// Handle implements caddyevents.Handler.
func (h eventHandler) Handle(_ context.Context, event caddy.Event) error {
	h.react(event.Data)
	return nil
}

// unhealthy hears that a replica fails its active health checks: it may have
// lost its cache, or only be busy.
func (w *loadWatch) unhealthy(data map[string]any) {
	for _, dial := range w.upstreamsOf(data) {
		w.fleet.Distrust(dial)
	}
}

// healthy hears that a replica passes its active health checks again: a look
// at its load page tells whether it was restarted.
func (w *loadWatch) healthy(data map[string]any) {
	for _, dial := range w.upstreamsOf(data) {
		w.poller.PollSoon(dial)
	}
}

// upstreamsOf returns the upstreams of this policy that a health event is
// about. It may be about those of another proxy handler.
func (w *loadWatch) upstreamsOf(data map[string]any) []string {
	host, _ := data["host"].(string)
	if dials := w.named[host]; dials != nil {
		return dials
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.seen[host]; ok {
		return []string{host}
	}
	return nil
}

// eventNames are what Caddy's health events may call an upstream: by its
// address or, if another port is checked, by that.
func eventNames(address caddy.NetworkAddress, checks *reverseproxy.HealthChecks) []string {
	if address.IsUnixNetwork() || address.IsFdNetwork() {
		return []string{"localhost"}
	}
	names := []string{address.JoinHostPort(0)}
	if checks == nil || checks.Active == nil || checks.Active.Upstream != "" || checks.Active.Port == 0 {
		return names
	}
	address.StartPort = uint(checks.Active.Port)
	if other := address.JoinHostPort(0); other != names[0] {
		names = append(names, other)
	}
	return names
}

// checks listens to active health checks that go to the load page.
func (w *loadWatch) checks() *healthWatch {
	return &healthWatch{
		wants: w.poller.Wants,
		report: func(a healthAnswer) {
			w.poller.Observe(a.dial, a.uri, a.asked, a.header, a.body)
		},
	}
}

// Interface guard
var _ caddyevents.Handler = eventHandler{}
