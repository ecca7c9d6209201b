package selection

import (
	"math"
	"testing"
	"time"
)

// silent is a report that tells nothing.
func silent() *Report {
	nan := math.NaN()
	return &Report{Running: nan, Waiting: nan, CapacityTokens: nan, Slots: nan, PrefixQueries: nan, PrefixHits: nan}
}

// TestForeignLoadIsAvoided has one replica report work that we did not give it.
func TestForeignLoadIsAvoided(t *testing.T) {
	f := newTestFleet()
	replicas := addresses(2)
	now := at(0)
	for i := range 40 {
		now = now.Add(100 * time.Millisecond)
		b := f.Place(now, chat(uint64(i), 4000), replicas)
		b.FirstToken(now.Add(100 * time.Millisecond))
		b.End(now.Add(200*time.Millisecond), Usage{Output: 10})
	}
	busy := silent()
	busy.Running, busy.Waiting = 10, 20
	idle := silent()
	idle.Running, idle.Waiting = 0, 0
	now = now.Add(time.Second) // all have ended
	busy.At, idle.At = now, now
	f.Report(now, replicas[0], busy)
	f.Report(now, replicas[1], idle)
	for i := range 8 {
		if b := f.Place(now, chat(uint64(100+i), 4000), replicas); b.Estimate.Replica != replicas[1] {
			t.Fatalf("request %d went to the replica with 20 waiting: %+v", i, b.Estimate)
		}
	}
}

// TestOwnLoadIsNotForeign reports exactly what we gave.
func TestOwnLoadIsNotForeign(t *testing.T) {
	var l foreign
	report := silent()
	report.Running, report.Waiting = 5, 2
	if all, ok := l.report(report, 7); !ok || all != 7 || l != (foreign{}) {
		t.Errorf("%g requests in all, foreign load of nobody else's work: %+v", all, l)
	}
	if l.report(report, 9); l != (foreign{}) {
		t.Errorf("foreign load of less than our own work: %+v", l)
	}
	if _, ok := l.report(silent(), 0); ok {
		t.Error("load taken from a report that tells none")
	}
}

// TestRequestThatEndsDuringAPollIsNotForeign has a replica that counts a request
// when it is asked, and is heard when the request has ended.
func TestRequestThatEndsDuringAPollIsNotForeign(t *testing.T) {
	f := newTestFleet()
	replicas := addresses(2)
	b := f.Place(at(0), chat(1, 2000), replicas)
	report := silent()
	report.At = at(50 * time.Millisecond)
	report.Running, report.Waiting = 0, 1
	b.End(at(60*time.Millisecond), Usage{Prompt: 2000, Output: 2})
	f.Report(at(70*time.Millisecond), b.Estimate.Replica, report)
	for _, s := range f.Status(at(80 * time.Millisecond)) {
		if s.ForeignRunning != 0 || s.ForeignWaiting != 0 {
			t.Errorf("%+v", s)
		}
	}
	report.At = at(1050 * time.Millisecond)
	f.Report(at(1070*time.Millisecond), b.Estimate.Replica, report)
	if s := f.Status(at(1080 * time.Millisecond)); s[0].ForeignWaiting+s[1].ForeignWaiting != 1 {
		t.Errorf("a request of others is not seen: %+v", s)
	}
}

func TestForeignShare(t *testing.T) {
	var l foreign
	var r rates
	for i := range 60 {
		report := silent()
		report.Running, report.Waiting = 20, 0
		all, _ := l.report(report, 10)
		r.report(at(time.Duration(i)*time.Second), 10, all)
	}
	if got := r.foreign(); got < 1.8 || got > 2 {
		t.Errorf("%.2f times our own work, want nearly 2", got)
	}
	if l.running != 10 {
		t.Errorf("%g foreign requests, want 10", l.running)
	}
}

// TestAbsurdReportsKeepPricesFinite has a replica report counters that have run
// below zero. It must not become the best of all.
func TestAbsurdReportsKeepPricesFinite(t *testing.T) {
	for _, count := range []float64{1e19, 1e155, math.MaxFloat64} {
		f, replicas := newTestFleet(), addresses(3)
		report := silent()
		report.Running, report.Waiting, report.At = count, count, at(0)
		f.Place(at(0), chat(0, 1000), replicas[:1]).End(at(0), Usage{})
		f.Report(at(1), replicas[0], report)
		for i := range 8 {
			b := f.Place(at(time.Second), chat(uint64(1+i), 1000), replicas)
			if math.IsNaN(b.Estimate.Cost) || b.Estimate.Replica == replicas[0] {
				t.Errorf("%g requests reported: request %d went to %+v", count, i, b.Estimate)
			}
		}
	}
}
