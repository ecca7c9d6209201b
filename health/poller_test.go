package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// bubble runs a test whose clock only moves while all of it waits, with a
// started poller of vLLM replicas.
func bubble(t *testing.T, config Config, test func(t *testing.T, p *Poller)) {
	synctest.Test(t, func(t *testing.T) {
		if config.Engine == "" {
			config.Engine = "vllm"
		}
		if config.Interval == 0 {
			config.Interval = time.Second
		}
		p := newPoller(t, config)
		p.Start()
		test(t, p)
		p.Stop()
	})
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestEveryReplicaIsPolledEveryInterval(t *testing.T) {
	var got reports
	e := newEngine(map[string]string{"/metrics": vllmLoad})
	bubble(t, Config{Fetch: e.fetch, OnReport: got.take}, func(t *testing.T, p *Poller) {
		start := time.Now()
		for i := range 20 {
			p.Add(fmt.Sprint("r", i))
		}
		after(100 * time.Second)
		firsts := make(map[time.Duration]bool)
		for i := range 20 {
			all := got.of(fmt.Sprint("r", i))
			if n := len(all); n < 90 || n > 112 {
				t.Errorf("replica %d has %d reports in 100 s", i, n)
			}
			first := all[0].At.Sub(start)
			if first > time.Second {
				t.Errorf("the first poll of replica %d came after %s", i, first)
			}
			firsts[first] = true
			gaps := make(map[time.Duration]bool)
			for j := range all[1:] {
				gap := all[j+1].At.Sub(all[j].At)
				if gap < 900*time.Millisecond || gap > 1100*time.Millisecond {
					t.Errorf("two polls are %s apart", gap)
				}
				gaps[gap] = true
			}
			if len(gaps) < 10 {
				t.Errorf("replica %d is polled in step: gaps are %v", i, gaps)
			}
		}
		if len(firsts) < 10 {
			t.Errorf("first polls come together, after %v", firsts)
		}
	})
}

func TestFailuresBackOff(t *testing.T) {
	var at []time.Time
	fetch := func(context.Context, string, string, http.Header) (*http.Response, error) {
		at = append(at, time.Now())
		return nil, errors.New("connection refused")
	}
	bubble(t, Config{Fetch: fetch}, func(t *testing.T, p *Poller) {
		p.Add("a")
		after(5 * time.Minute)
		if n := len(at); n < 11 || n > 16 {
			t.Errorf("%d polls in 5 minutes", n)
		}
		if gap := at[len(at)-1].Sub(at[len(at)-2]); gap < 27*time.Second || gap > 33*time.Second {
			t.Errorf("the last two polls are %s apart", gap)
		}
		n := len(at)
		p.PollSoon("a")
		after(200 * time.Millisecond)
		if len(at) != n+1 {
			t.Errorf("%d polls soon after PollSoon", len(at)-n)
		}
		p.PollSoon("b")
	})
}

// TestPollSoonDuringPoll wants a poll while one is under way that will fail.
func TestPollSoonDuringPoll(t *testing.T) {
	var polls atomic.Int64
	fetch := func(ctx context.Context, _, _ string, _ http.Header) (*http.Response, error) {
		polls.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	config := Config{Fetch: fetch, Interval: time.Minute, Timeout: 5 * time.Second}
	bubble(t, config, func(t *testing.T, p *Poller) {
		p.Add("a")
		after(2 * time.Second)
		p.PollSoon("a")
		after(2 * time.Second)
		if n := polls.Load(); n != 1 {
			t.Errorf("%d polls of one replica at the same time", n)
		}
		after(3 * time.Second)
		if n := polls.Load(); n != 2 {
			t.Errorf("%d polls, want a second one soon after the first", n)
		}
	})
}

func TestRemovedReplicasAreForgotten(t *testing.T) {
	var got reports
	e := newEngine(map[string]string{"/metrics": vllmLoad})
	bubble(t, Config{Fetch: e.fetch, OnReport: got.take}, func(t *testing.T, p *Poller) {
		p.Set("a", "b")
		p.Add("b", "c")
		after(2 * time.Second)
		p.Set("b", "c")
		p.Remove("c", "x")
		counts := [3]int{len(got.of("a")), len(got.of("b")), len(got.of("c"))}
		if counts[0] == 0 || counts[1] == 0 || counts[2] == 0 {
			t.Errorf("reports at first: %v", counts)
		}
		after(10 * time.Second)
		if len(got.of("a")) != counts[0] || len(got.of("c")) != counts[2] {
			t.Error("removed replicas are still polled")
		}
		if len(got.of("b")) < counts[1]+9 {
			t.Error("the replica that stayed is not polled")
		}
		if _, ok := p.Status("a"); ok {
			t.Error("a removed replica has a status")
		}
	})
}

func TestStopEndsPollsUnderWay(t *testing.T) {
	var got reports
	fetch := func(ctx context.Context, _, _ string, _ http.Header) (*http.Response, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	core, logs := observer.New(zap.DebugLevel)
	config := Config{Fetch: fetch, OnReport: got.take, Timeout: time.Hour, Logger: zap.New(core)}
	bubble(t, config, func(t *testing.T, p *Poller) {
		p.Add("a")
		after(2 * time.Second)
		p.Stop()
		p.Add("b")
		p.Start()
		p.PollSoon("a")
		if p.Observe("a", "/metrics", time.Now(), nil, []byte(vllmLoad)) {
			t.Error("a page is taken after the end")
		}
		after(10 * time.Second)
		if logs.Len() > 0 || len(got.of("a")) > 0 {
			t.Error("a poll that was stopped counts")
		}
	})
}

// TestHungReplicas has 40 of 50 replicas that never answer. The others are
// polled on time, and few fetches are under way.
func TestHungReplicas(t *testing.T) {
	var got reports
	var inFlight, most atomic.Int64
	e := newEngine(map[string]string{"/metrics": vllmLoad})
	fetch := func(ctx context.Context, replica, path string, h http.Header) (*http.Response, error) {
		if !strings.HasPrefix(path, "/metrics") || !strings.HasPrefix(replica, "hung") {
			return e.fetch(ctx, replica, path, h)
		}
		n := inFlight.Add(1)
		defer inFlight.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	config := Config{Fetch: fetch, OnReport: got.take, MaxInFlight: 16, Timeout: 2 * time.Second}
	bubble(t, config, func(t *testing.T, p *Poller) {
		for i := range 40 {
			p.Add(fmt.Sprint("hung", i))
		}
		after(20 * time.Second)
		if n := most.Load(); n != 16 {
			t.Errorf("%d fetches were under way at first, want 16", n)
		}
		for i := range 10 {
			p.Add(fmt.Sprint("good", i))
		}
		most.Store(0)
		after(20 * time.Second)
		for i := range 10 {
			all := got.of(fmt.Sprint("good", i))
			if len(all) < 17 {
				t.Errorf("replica %d has %d reports in 20 s", i, len(all))
			}
		}
		if n := most.Load(); n != 8 {
			t.Errorf("%d hung fetches were under way, want the half of 16", n)
		}
		for i := range 40 {
			if s, _ := p.Status(fmt.Sprint("hung", i)); s.Failures == 0 {
				t.Errorf("hung replica %d was never given up", i)
			}
		}
	})
}

func TestOneLinePerChange(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	e := newEngine(map[string]string{"/metrics": vllmLoad})
	bubble(t, Config{Fetch: e.fetch, Logger: zap.New(core)}, func(t *testing.T, p *Poller) {
		lines := func() (messages []string) {
			for _, entry := range logs.TakeAll() {
				messages = append(messages, entry.Level.String()+" "+entry.Message)
			}
			return messages
		}
		want := func(state string, want ...string) {
			t.Helper()
			if got := lines(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: log has %q, want %q", state, got, want)
			}
		}
		p.Add("a")
		after(10 * time.Second)
		want("good", "info replica reports its load")
		e.change(func() { e.err = errors.New("connection refused") })
		after(10 * time.Second)
		e.change(func() { e.err, e.status["/metrics"] = nil, 500 })
		after(2 * time.Minute)
		want("failing", "warn replica does not report its load")
		e.change(func() { clear(e.status) })
		after(time.Minute)
		want("good again", "info replica reports its load")
		e.change(func() { e.pages["/metrics"] = "process_start_time_seconds 100\n" + vllmLoad })
		after(10 * time.Second)
		want("start time appears")
		e.change(func() { e.pages["/metrics"] = "process_start_time_seconds 200\n" + vllmLoad })
		after(10 * time.Second)
		want("restarted", "info replica restarted")
	})
}

func TestRestarts(t *testing.T) {
	page := func(start, queries string) string {
		return vllmLoad + start + "vllm:prefix_cache_queries_total " + queries + "\n"
	}
	tests := map[string]struct {
		pages []string
		want  []bool
	}{
		"start time":    {[]string{page("", "5"), page(processStart+" 100\n", "6"), page(processStart+" 200\n", "7")}, []bool{false, false, true}},
		"counters":      {[]string{page("", "5"), page("", "6"), page("", "2"), page("", "3")}, []bool{false, false, true, false}},
		"gone counters": {[]string{page("", "5"), vllmLoad, page("", "1")}, []bool{false, true, false}},
		// Two processes answer in turn at one address.
		"two start times": {
			[]string{page(processStart+" 100\n", "5"), page(processStart+" 200\n", "5"), page(processStart+" 100\n", "5"), page(processStart+" 200\n", "5")},
			[]bool{false, true, false, false},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine(map[string]string{})
			p, got := onePoller(t, e, Config{Engine: "vllm"})
			for i, body := range tt.pages {
				e.pages["/metrics"] = body
				once(p, "a")
				e.err = errors.New("an outage in between changes nothing")
				once(p, "a")
				e.err = nil
				if r := got.latest(t, "a"); r.Restarted != tt.want[i] {
					t.Errorf("report %d says restarted %t", i, r.Restarted)
				}
			}
		})
	}
}

// TestAnotherPageIsNoRestart goes from a page with counters to one without.
func TestAnotherPageIsNoRestart(t *testing.T) {
	e := newEngine(map[string]string{"/metrics": sglangPage, sglangLoadsPath: engineTests["SGLang, /v1/loads"].body})
	p, got := onePoller(t, e, Config{Engine: "sglang"})
	once(p, "a")
	e.change(func() { delete(e.pages, "/metrics") })
	once(p, "a")
	if r := got.latest(t, "a"); r.Restarted || r.Running != 5 {
		t.Errorf("report is %+v", r)
	}
}

func TestErrorsHoldNoKeys(t *testing.T) {
	fetch := func(ctx context.Context, replica, path string, _ http.Header) (*http.Response, error) {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:0"+path, nil)
		return http.DefaultClient.Do(req)
	}
	p := newPoller(t, Config{Fetch: fetch, Engine: "vllm", Path: "/metrics?key=secret"})
	p.Add("a")
	once(p, "a")
	s, _ := p.Status("a")
	if s.Err == nil || strings.Contains(s.Err.Error()+s.Path, "secret") {
		t.Errorf("status is %+v", s)
	}
}

func TestPollAsksForGzip(t *testing.T) {
	fetch := func(_ context.Context, _, _ string, header http.Header) (*http.Response, error) {
		if header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("header is %v", header)
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Encoding": {"gzip"}},
			Body: io.NopCloser(strings.NewReader(string(zipped([]byte(vllmLoad))))),
		}, nil
	}
	p := newPoller(t, Config{Fetch: fetch, Engine: "vllm"})
	p.Add("a")
	if !once(p, "a") {
		t.Error("a gzip body is not read")
	}
}
