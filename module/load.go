package module

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

const (
	// lookInterval is how often the pool is looked at for upstreams that have
	// come or gone. Sources of dynamic upstreams are not asked much oftener.
	lookInterval = time.Second
	// absence is how long a dynamic upstream must not have been seen before it is
	// no longer asked for its load.
	absence = time.Hour
	// maxDynamic bounds the dynamic upstreams of one policy that are asked.
	maxDynamic = 4096
)

// loadWatch tells the fleet what the replicas behind one proxy handler say of
// their load, and what Caddy says of their health. Methods are safe for
// concurrent use, and see may be called on nil.
type loadWatch struct {
	fleet  *selection.Fleet
	poller *health.Poller
	static map[string]bool     // upstreams by dial address
	named  map[string][]string // upstreams by what Caddy's events call them

	dynamic bool
	look    atomic.Int64 // when the pool is looked at next, in Unix nanoseconds
	mu      sync.Mutex
	seen    map[string]time.Time // dynamic upstreams by dial address
}

// newLoadWatch makes a watch of the upstreams of handler, which is being
// provisioned. Replicas are asked through transport once start is called.
func (c *CacheAware) newLoadWatch(handler *reverseproxy.Handler, transport http.RoundTripper) (*loadWatch, error) {
	w := &loadWatch{
		fleet:   c.state.fleet,
		static:  make(map[string]bool),
		named:   make(map[string][]string),
		dynamic: handler.DynamicUpstreamsRaw != nil,
		seen:    make(map[string]time.Time),
	}
	poller, err := health.New(health.Config{
		Fetch:    (&loadFetch{transport: transport, headers: handler.Headers}).fetch,
		Engine:   c.Engine,
		Path:     c.LoadURI,
		Interval: c.loadInterval(),
		Memory:   c.state.loads,
		OnReport: w.report,
		Logger:   c.logger.Named("load"),
	})
	if err != nil {
		return nil, err
	}
	w.poller = poller
	c.state.join(w)
	for _, upstream := range handler.Upstreams {
		w.addStatic(upstream.Dial, handler, c.logger)
	}
	return w, nil
}

// addStatic takes in an upstream of the configuration. One whose address
// depends on the request stands for no replica in particular.
func (w *loadWatch) addStatic(dial string, handler *reverseproxy.Handler, logger *zap.Logger) {
	if w.static[dial] {
		return
	}
	address, err := resolve(dial, caddy.NewReplacer())
	if err != nil {
		logger.Info("upstream is not asked for its load", zap.String("upstream", dial), zap.Error(err))
		return
	}
	w.static[dial] = true
	for _, name := range eventNames(address, handler.HealthChecks) {
		w.named[name] = append(w.named[name], dial)
	}
	w.poller.Add(dial)
}

// resolve returns the address that a dial address stands for, if it needs no
// request to know that.
func resolve(dial string, replacer *caddy.Replacer) (caddy.NetworkAddress, error) {
	text, err := replacer.ReplaceOrErr(dial, true, true)
	if err != nil {
		return caddy.NetworkAddress{}, fmt.Errorf("replacing placeholders: %w", err)
	}
	address, err := caddy.ParseNetworkAddress(text)
	if err != nil {
		return caddy.NetworkAddress{}, fmt.Errorf("parsing address: %w", err)
	}
	if n := address.PortRangeSize(); n != 1 {
		return caddy.NetworkAddress{}, fmt.Errorf("parsing address: %d ports, want one", n)
	}
	return address, nil
}

// report hands a replica's report on.
func (w *loadWatch) report(replica string, r health.Report) {
	report := reportOf(&r)
	w.fleet.Report(time.Now(), replica, &report)
}

// see takes note of the pool that a request may go to. All but about one
// request a second leave after one comparison.
func (w *loadWatch) see(pool reverseproxy.UpstreamPool, now time.Time) {
	if w == nil || !w.dynamic {
		return
	}
	due := w.look.Load()
	if now.UnixNano() < due || !w.look.CompareAndSwap(due, now.Add(lookInterval).UnixNano()) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, upstream := range pool {
		w.sight(upstream.Dial, now)
	}
	for dial, at := range w.seen {
		if now.Sub(at) > absence {
			delete(w.seen, dial)
			w.poller.Remove(dial)
		}
	}
}

// sight takes note of one upstream of a pool. The lock is held.
func (w *loadWatch) sight(dial string, now time.Time) {
	_, known := w.seen[dial]
	if w.static[dial] || !known && len(w.seen) >= maxDynamic {
		return
	}
	w.seen[dial] = now
	if !known {
		w.poller.Add(dial)
	}
}

// stop ends all asking. It returns when none is under way.
func (w *loadWatch) stop() { w.poller.Stop() }
