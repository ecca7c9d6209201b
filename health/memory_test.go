package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestRestartBetweenPollers has one poller take the place of another, as a
// reload does.
func TestRestartBetweenPollers(t *testing.T) {
	first := vllmLoad + processStart + " 100\nvllm:prefix_cache_queries_total 5\n"
	for name, tt := range map[string]struct {
		page   string
		config Config
		want   bool
	}{
		"goes on":         {vllmLoad + processStart + " 100\nvllm:prefix_cache_queries_total 6\n", Config{Engine: "vllm"}, false},
		"restarted":       {vllmLoad + processStart + " 200\nvllm:prefix_cache_queries_total 6\n", Config{Engine: "vllm"}, true},
		"counters":        {vllmLoad + processStart + " 100\nvllm:prefix_cache_queries_total 2\n", Config{Engine: "vllm"}, true},
		"another engine":  {vllmLoad, Config{Engine: "auto"}, false},
		"another page":    {vllmLoad, Config{Engine: "vllm", Path: "/load"}, false},
		"another replica": {vllmLoad, Config{Engine: "vllm"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(map[string]string{"/metrics": first})
			core, logs := observer.New(zap.DebugLevel)
			memory := NewMemory()
			before, _ := onePoller(t, e, Config{Engine: "vllm", Memory: memory})
			once(before, "a")
			before.Stop()

			e.pages = map[string]string{"/metrics": tt.page, "/load": tt.page}
			tt.config.Memory, tt.config.Logger = memory, zap.New(core)
			after, got := onePoller(t, e, tt.config)
			replica := "a"
			if name == "another replica" {
				replica = "b"
				after.Add("b")
			}
			once(after, replica)
			if r := got.latest(t, replica); r.Restarted != tt.want {
				t.Errorf("the first report says restarted %t", r.Restarted)
			}
			if name == "goes on" && logs.Len() > 0 {
				t.Errorf("%d lines are logged, want none as nothing has changed", logs.Len())
			}
			once(after, replica)
			if r := got.latest(t, replica); r.Restarted {
				t.Error("the second report says restarted")
			}
		})
	}
}

// TestPollersTakeTurns has two pollers of the same replicas, and one of
// another page.
func TestPollersTakeTurns(t *testing.T) {
	memory := NewMemory()
	var polls, failing atomic.Int64
	e := newEngine(map[string]string{"/metrics": vllmLoad, "/load": vllmLoad})
	fetch := func(first bool) Fetch {
		return func(ctx context.Context, replica, path string, h http.Header) (*http.Response, error) {
			if path != modelsPage.path {
				polls.Add(1)
			}
			if first && failing.Load() != 0 {
				return nil, errors.New("connection refused")
			}
			return e.fetch(ctx, replica, path, h)
		}
	}
	var got [2]reports
	config := Config{Fetch: fetch(true), Memory: memory, OnReport: got[0].take}
	bubble(t, config, func(t *testing.T, p *Poller) {
		q := newPoller(t, Config{Fetch: fetch(false), Engine: "vllm", Interval: time.Second, Memory: memory, OnReport: got[1].take})
		q.Start()
		defer q.Stop()
		for i := range 10 {
			p.Add(fmt.Sprint("r", i))
			q.Add(fmt.Sprint("r", i))
		}
		count := func(d time.Duration) int64 {
			polls.Store(0)
			after(d)
			return polls.Load()
		}
		if n := count(100 * time.Second); n < 900 || n > 1300 {
			t.Errorf("10 replicas were polled %d times in 100 s by two", n)
		}
		for i := range 10 {
			name := fmt.Sprint("r", i)
			if n := len(got[0].of(name)) + len(got[1].of(name)); n < 90 || n > 130 {
				t.Errorf("replica %d has %d reports in 100 s", i, n)
			}
			for _, poller := range []*Poller{p, q} {
				if s, _ := poller.Status(name); s.Engine != "vllm" || time.Since(s.Report.At) > 2*time.Second || s.Since.IsZero() {
					t.Errorf("status is %+v", s)
				}
			}
		}
		failing.Store(1)
		after(10 * time.Second)
		if s, _ := p.Status("r1"); s.Err == nil || s.Failures < 2 {
			t.Errorf("status of the poller whose way is blocked is %+v", s)
		}
		if s, _ := q.Status("r1"); s.Err != nil || time.Since(s.Report.At) > 2*time.Second {
			t.Errorf("status of the other is %+v", s)
		}
		alone := newPoller(t, Config{Fetch: fetch(false), Engine: "vllm", Path: "/load", Interval: time.Second, Memory: memory})
		alone.Start()
		defer alone.Stop()
		alone.Add("r1")
		after(2 * time.Second)
		if s, _ := alone.Status("r1"); s.Path != "/load" {
			t.Errorf("status of another page is %+v", s)
		}
	})
}

func TestMemoryForgetsAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemory()
		e := newEngine(map[string]string{"/metrics": vllmLoad})
		p := newPoller(t, Config{Fetch: e.fetch, Engine: "vllm", Memory: memory})
		p.Add("a", "b", "c")
		p.Remove("a", "b")
		after(59 * time.Minute)
		p.Add("b")
		after(2 * time.Minute)
		p.Add("d")
		var kept []string
		for _, name := range []string{"a", "b", "c", "d"} {
			if memory.records[recordKey{name, "vllm", ""}] != nil {
				kept = append(kept, name)
			}
		}
		if fmt.Sprint(kept) != "[b c d]" {
			t.Errorf("kept are %v", kept)
		}
		p.Stop()
	})
}

// TestRestartsInARowAreSaidOnce has two processes answer in turn at one address.
func TestRestartsInARowAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		e := newEngine(map[string]string{})
		p, got := onePoller(t, e, Config{Engine: "vllm", Logger: zap.New(core)})
		for i := range 20 {
			e.pages["/metrics"] = vllmLoad + fmt.Sprintf("vllm:prefix_cache_queries_total %d\n", 1000+i-500*(i%2))
			once(p, "a")
			after(time.Second)
		}
		if n := len(got.of("a")); n != 20 || !got.latest(t, "a").Restarted {
			t.Errorf("%d reports, the latest is %+v", n, got.latest(t, "a"))
		}
		after(2 * time.Minute)
		e.pages["/metrics"] = vllmLoad + "vllm:prefix_cache_queries_total 1\n"
		once(p, "a")
		if n := logs.FilterMessage("replica restarted").Len(); n != 2 {
			t.Errorf("%d restarts are logged, want 2", n)
		}
		p.Stop()
	})
}
