package health

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestObserve(t *testing.T) {
	e := newEngine(map[string]string{"/metrics": vllmLoad})
	p, got := onePoller(t, e, Config{})
	now := time.Now()
	header := http.Header{"Content-Encoding": {"gzip"}}
	if !p.Wants("a", "/metrics") || p.Wants("a", "/health") || p.Wants("b", "/metrics") {
		t.Error("the wrong pages are wanted")
	}
	if p.Observe("b", "/metrics", now, nil, []byte(vllmLoad)) ||
		p.Observe("a", "/metrics", now, nil, []byte("<html>")) ||
		p.Observe("a", "/metrics", now, header, []byte(vllmLoad)) ||
		p.Observe("a", "/health", now, nil, []byte(vllmLoad)) {
		t.Error("a page is taken that tells nothing")
	}
	if !p.Observe("a", "/metrics", now, header, zipped([]byte(vllmLoad))) {
		t.Error("a good page is not taken")
	}
	if r := got.latest(t, "a"); r.Engine != "vllm" || r.Running != 3 || !r.At.Equal(now) {
		t.Errorf("report is %+v", r)
	}
	if p.Wants("a", "/slots") || p.Observe("a", "/metrics", now, nil, []byte(llamaLoad)) {
		t.Error("another engine's page is taken")
	}
}

func TestObservedPagesInOrder(t *testing.T) {
	e := newEngine(map[string]string{})
	var got reports
	bubble(t, Config{Fetch: e.fetch, OnReport: got.take, Interval: -1}, func(t *testing.T, p *Poller) {
		p.Add("a")
		page := "vllm:num_requests_running 1\nvllm:prefix_cache_queries_total 5\n"
		early := time.Now()
		time.Sleep(time.Second)
		p.Observe("a", "/metrics", time.Now(), nil, []byte(page))
		p.Observe("a", "/metrics", early, nil, []byte(strings.Replace(page, "5", "4", 1)))
		if all := got.of("a"); len(all) != 1 {
			t.Errorf("an older page counts: %+v", all)
		}
		p.Observe("a", "/metrics", time.Now(), nil, []byte(strings.Replace(page, "5", "3", 1)))
		if r := got.latest(t, "a"); !r.Restarted {
			t.Error("a restart is not seen")
		}
	})
}

func TestObservedPageEndsBackoff(t *testing.T) {
	e := newEngine(nil)
	e.err = errors.New("connection refused")
	bubble(t, Config{Fetch: e.fetch}, func(t *testing.T, p *Poller) {
		p.Add("a")
		after(3 * time.Minute)
		e.takeAsked()
		p.Observe("a", "/metrics", time.Now(), nil, []byte(vllmLoad))
		after(200 * time.Millisecond)
		if len(e.takeAsked()) != 1 {
			t.Error("the replica is not polled at once")
		}
	})
}

// TestReportsOfOneReplicaInOrder polls and observes at the same time.
func TestReportsOfOneReplicaInOrder(t *testing.T) {
	var inside atomic.Int64
	var last time.Time
	onReport := func(_ string, r Report) {
		if inside.Add(1) != 1 || r.At.Before(last) {
			t.Error("reports come together or in the wrong order")
		}
		last = r.At
		inside.Add(-1)
	}
	e := newEngine(map[string]string{"/metrics": vllmLoad})
	p := newPoller(t, Config{Fetch: e.fetch, OnReport: onReport, Engine: "vllm", Interval: time.Millisecond})
	p.Add("a")
	p.Start()
	done := make(chan struct{})
	for range 4 {
		go func() {
			for range 200 {
				p.Observe("a", "/metrics", time.Now(), nil, []byte(vllmLoad))
				p.Wants("a", "/metrics")
				p.Add("a")
				p.Status("a")
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		<-done
	}
}
