package integration

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/module"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// often asks replicas for their load as often as tests like it.
const often = "load_interval 20ms"

// loadOf returns what the running policies have heard of a replica's load, with a
// report of nothing if they have not.
func loadOf(address string) module.LoadStatus {
	load := module.LoadStatus{}
	for _, state := range module.Statuses() {
		for _, r := range state.Replicas {
			if r.Replica == address && r.Load != nil {
				load = *r.Load
			}
		}
	}
	if load.Report == nil {
		load.Report = new(health.Report)
	}
	return load
}

// awaitReport waits for a report on a replica that was asked for after now.
func awaitReport(t *testing.T, address string) {
	t.Helper()
	now := time.Now()
	await(t, "a report of "+address, func() bool { return loadOf(address).Report.At.After(now) })
}

// small is a replica whose capacity nobody would guess.
func small() engine.Options {
	profile := engine.H100x8B
	profile.Blocks = 1234
	return engine.Options{Profile: profile, HideCachedTokens: true}
}

func TestCapacityIsKnownBeforeTheFirstRequest(t *testing.T) {
	for options, want := range map[string]int{
		often:                             1234 * 16,
		often + "\nengine vllm":           1234 * 16,
		often + "\ncache_capacity 100000": 100_000,
	} {
		t.Run(options, func(t *testing.T) {
			r := newRig(t, 2, small(), options, "")
			for _, e := range r.engines {
				awaitReport(t, e.Addr())
			}
			r.sendAll(distinct(0, 4, 100))
			for address, s := range r.status() {
				if s.Capacity != want {
					t.Errorf("capacity of %s is %d, want %d", address, s.Capacity, want)
				}
			}
		})
	}
}

func TestNothingIsAskedOfEngineNone(t *testing.T) {
	r := newRig(t, 2, small(), often+"\nengine none", "")
	for _, a := range r.sendAll(distinct(0, 8, 500)) {
		if a.Status != 200 {
			t.Errorf("answer: %+v", a)
		}
	}
	for _, e := range r.engines {
		if s := loadOf(e.Addr()); s.Failures != 0 || !s.Report.At.IsZero() {
			t.Errorf("status is %+v", s)
		}
		if s := r.status()[e.Addr()]; s.Capacity != selection.DefaultCapacity {
			t.Errorf("capacity is %d", s.Capacity)
		}
	}
}

// TestRestartIsHeardOfAtTheNextPoll has answers that do not tell what was
// cached, and a restart while nobody asks for anything.
func TestRestartIsHeardOfAtTheNextPoll(t *testing.T) {
	r := newRig(t, 1, small(), often, "")
	e := r.engines[0]
	warm := chat{System: text(1, 2000), User: "x", MaxTokens: 2}
	r.send(t.Context(), warm)
	if a := r.send(t.Context(), warm); a.Matched < 1500 {
		t.Fatalf("a warm replica is expected to hold %d tokens", a.Matched)
	}
	awaitReport(t, e.Addr())
	e.Crash()
	if err := e.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, e.Addr())
	if a := r.send(t.Context(), warm); a.Status != 200 || a.Matched != 0 {
		t.Errorf("after the restart the answer is %+v, want no match", a)
	}
}

// TestReloadKeepsWhatWasHeard has reloads with and without a restart during
// which nobody asked the replica.
func TestReloadKeepsWhatWasHeard(t *testing.T) {
	for name, restarts := range map[string]bool{"goes on": false, "restarts": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, small(), often, "")
			e := r.engines[0]
			warm := chat{System: text(1, 2000), User: "x", MaxTokens: 2}
			r.send(t.Context(), warm)
			awaitReport(t, e.Addr())
			r.options = "load_interval 0"
			r.load()
			if restarts {
				e.Crash()
				if err := e.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			r.options = often
			r.load()
			awaitReport(t, e.Addr())
			a := r.send(t.Context(), warm)
			if a.Status != 200 || (a.Matched == 0) != restarts {
				t.Errorf("after the reload the answer is %+v", a)
			}
		})
	}
}

// listed is a source of dynamic upstreams that a test changes.
type listed struct{}

var dynamicUpstreams struct {
	sync.Mutex
	dials []string
}

func setDynamic(dials ...string) {
	dynamicUpstreams.Lock()
	defer dynamicUpstreams.Unlock()
	dynamicUpstreams.dials = dials
}

func init() { caddy.RegisterModule(listed{}) }

func (listed) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.reverse_proxy.upstreams.listed",
		New: func() caddy.Module { return new(listed) },
	}
}

func (*listed) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

func (*listed) GetUpstreams(*http.Request) (upstreams []*reverseproxy.Upstream, err error) {
	dynamicUpstreams.Lock()
	defer dynamicUpstreams.Unlock()
	for _, dial := range dynamicUpstreams.dials {
		upstreams = append(upstreams, &reverseproxy.Upstream{Dial: dial})
	}
	return upstreams, nil
}

// TestDynamicUpstreamsArePolled has replicas that come, go and come back.
func TestDynamicUpstreamsArePolled(t *testing.T) {
	r := newRig(t, 2, small(), often, "")
	first, second := r.engines[0].Addr(), r.engines[1].Addr()
	r.engines, r.handler = nil, "dynamic listed"
	r.load()
	send := func(upstreams ...string) answer {
		t.Helper()
		setDynamic(upstreams...)
		a := r.send(t.Context(), chat{System: text(1, 2000), User: "x", MaxTokens: 2})
		if a.Status != 200 || !slices.Contains(upstreams, a.Replica) {
			t.Fatalf("answer: %+v", a)
		}
		return a
	}
	send(first)
	awaitReport(t, first)
	if s := loadOf(second); s.Since != (time.Time{}) {
		t.Errorf("status of an upstream not seen yet: %+v", s)
	}
	await(t, "a report of the second", func() bool {
		send(second)
		return !loadOf(second).Report.At.IsZero()
	})
	awaitReport(t, first) // which has left the set
	if a := send(first); a.Matched < 1500 {
		t.Errorf("the replica that came back is expected to hold %d tokens", a.Matched)
	}
}

// TestHealthEvents has a replica that fails its active health checks, and polls
// only once an hour.
func TestHealthEvents(t *testing.T) {
	r := newRig(t, 1, small(), "load_interval 1h", "health_uri /health\nhealth_interval 20ms\n")
	e := r.engines[0]
	awaitReport(t, e.Addr())
	warm := chat{System: text(1, 2000), User: "x", MaxTokens: 2}
	if a := r.send(t.Context(), warm); a.Status != 200 {
		t.Fatalf("answer: %+v", a)
	}
	time.Sleep(1100 * time.Millisecond) // start times closer than a second are taken for one
	e.Crash()
	await(t, "the replica is doubted", func() bool { return r.status()[e.Addr()].Doubted })
	before := time.Now()
	if err := e.Restart(); err != nil {
		t.Fatal(err)
	}
	await(t, "a report of the restart", func() bool {
		s := loadOf(e.Addr())
		return s.Report.Restarted && s.Report.At.After(before)
	})
	if s := r.status()[e.Addr()]; s.Doubted || s.Resident != 0 {
		t.Errorf("after the restart the replica is %+v", s)
	}
}

func TestPolicyOfAnotherNameHearsForItself(t *testing.T) {
	r := newRig(t, 1, small(), often+"\nname apart", "")
	address := r.engines[0].Addr()
	awaitReport(t, address)
	if states := module.Statuses(); len(states) != 1 || states[0].Name != "apart" || states[0].Policies != 1 {
		t.Errorf("states are %+v", states)
	}
}

func TestAdminTellsWhatReplicasReport(t *testing.T) {
	r := newAdminRig(t, 1, often)
	address := r.engines[0].Addr()
	awaitReport(t, address)
	var status struct{ States []module.Status }
	r.askFor("GET", "/cache_aware/", "", &status)
	load := status.States[0].Replicas[0].Load
	if load == nil || load.Engine != "vllm" || load.Failures != 0 || load.Report == nil || !health.Known(load.Report.CapacityTokens) {
		t.Fatalf("load: %+v", load)
	}
	page := r.scrape()
	for _, want := range []string{
		`replica_engine_info{engine="vllm",replica="` + address + `",state="default"} 1`,
		`replica_reported_running_requests{replica="` + address + `",state="default"} 0`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	out, err := run(t.Context(), module.StatusCommand(), "", "--address", r.admin)
	if err != nil || !strings.Contains(out, "vllm") {
		t.Errorf("%v in\n%s", err, out)
	}
	_ = r.engines[0].Close()
	await(t, "a failed poll", func() bool {
		out, err = run(t.Context(), module.StatusCommand(), "", "--address", r.admin)
		return err == nil && strings.Contains(out, "does not report its load")
	})
}
