package module

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() { caddy.RegisterModule(slowToLoad{}) }

// slowToLoad is a handler that takes a while to be provisioned.
type slowToLoad struct{}

func (slowToLoad) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.slow_to_load",
		New: func() caddy.Module { return new(slowToLoad) },
	}
}

func (slowToLoad) Provision(caddy.Context) error {
	time.Sleep(200 * time.Millisecond)
	return nil
}

func (slowToLoad) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}

// TestValidatingSendsNothing gives polls ten intervals of time between the
// policy's Provision and its Cleanup.
func TestValidatingSendsNothing(t *testing.T) {
	var asked atomic.Int64
	address := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	config := func() *caddy.Config {
		server := object{
			"listen":          []string{"127.0.0.1:0"},
			"automatic_https": object{"disable": true},
			"routes":          route(policyTo(nil, address), object{"handler": "slow_to_load"}),
		}
		text, err := json.Marshal(object{
			"logging": object{"logs": object{"default": object{"writer": object{"output": "discard"}}}},
			"storage": object{"module": "file_system", "root": t.TempDir()},
			"apps":    object{"http": object{"servers": object{"test": server}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		parsed := new(caddy.Config)
		if err := json.Unmarshal(text, parsed); err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	if err := caddy.Validate(config()); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	if states := runningStates(); len(states) != 0 {
		t.Errorf("after validation there is %v", states)
	}
}

func TestPollsEndWithTheConfiguration(t *testing.T) {
	e := newLoadEngine()
	var asked, connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		e.ServeHTTP(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateClosed:
			connections.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	runCaddy(t, object{"routes": route(policyTo(nil, address))})
	awaitLoad(t, address)
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	// What was sent before the end may arrive until the connections are gone.
	awaitTrue(t, "all connections closed", func() bool { return connections.Load() == 0 })
	n := asked.Load()
	time.Sleep(100 * time.Millisecond)
	if later := asked.Load(); later != n {
		t.Errorf("%d requests were sent after the end", later-n)
	}
	if states := runningStates(); len(states) != 0 {
		t.Errorf("after the end there is %v", states)
	}
}

// TestActiveHealthChecksTellTheLoad has no polls at all.
func TestActiveHealthChecksTellTheLoad(t *testing.T) {
	for name, test := range map[string]struct {
		options object
		uri     string
		want    bool
	}{
		"load page":       {object{"load_interval": 0}, "/metrics", true},
		"other page":      {object{"load_interval": 0}, "/health", false},
		"no engine":       {object{"engine": "none"}, "/metrics", false},
		"moved page":      {object{"load_interval": 0, "load_uri": "/load?key=a"}, "/load?key=a", true},
		"other query":     {object{"load_interval": 0, "load_uri": "/load?key=a"}, "/load", false},
		"auto, by itself": {object{"load_interval": 0, "engine": "auto"}, "/metrics", true},
	} {
		t.Run(name, func(t *testing.T) {
			checked := make(chan string, 100)
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				checked <- r.URL.String()
				_, _ = io.WriteString(w, vllmPage)
			})
			proxy := policyTo(test.options, address)
			proxy["health_checks"] = object{"active": object{"uri": test.uri, "interval": "20ms"}}
			runCaddy(t, object{"routes": route(proxy)})
			if test.want {
				awaitLoad(t, address)
			}
			for range 5 { // the second check comes after the first was heard
				if got := <-checked; got != test.uri {
					t.Errorf("the replica was asked for %s", got)
				}
			}
			if status := loadStatus(address); !status.Report.At.IsZero() != test.want {
				t.Errorf("status is %+v", status)
			}
			_ = caddy.Stop()
		})
	}
}

// TestTwoHandlersShareWhatTheyHear has two routes to the same replica: what one of
// them was told, the other one knows.
func TestTwoHandlersShareWhatTheyHear(t *testing.T) {
	address := serve(t, newLoadEngine().ServeHTTP)
	runCaddy(t, object{"routes": route(object{"handler": "subroute", "routes": []object{
		{"match": []object{{"path": []string{"/a/*"}}}, "handle": []object{policyTo(nil, address)}},
		{"handle": []object{policyTo(nil, address)}},
	}})})
	awaitLoad(t, address)
	awaitTrue(t, "both know the same report", func() bool {
		heard := reportTimes(address)
		return len(heard) == 2 && !heard[0].IsZero() && heard[0].Equal(heard[1])
	})
}

// reportTimes tells of each running policy when it asked for the report that it
// knows of a replica.
func reportTimes(dial string) (times []time.Time) {
	for _, s := range runningStates() {
		s.mu.Lock()
		for w := range s.watches {
			times = append(times, w.poller.Statuses()[dial].Report.At)
		}
		s.mu.Unlock()
	}
	return times
}
