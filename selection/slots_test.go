package selection

import (
	"testing"
	"time"
)

// TestSlotsAreLearned runs a replica that admits so many sequences at once and
// lets the next one wait for an end.
func TestSlotsAreLearned(t *testing.T) {
	for _, limit := range []int{2, 4, 7} {
		f := newTestFleet()
		replicas := addresses(1)
		var running, waiting []*Booking
		now := at(0)
		place := func() {
			b := f.Place(now, chat(uint64(now.UnixNano()), 100), replicas)
			if len(running) < limit {
				now = now.Add(10 * time.Millisecond)
				b.FirstToken(now)
				running = append(running, b)
			} else {
				waiting = append(waiting, b)
			}
		}
		end := func() {
			now = now.Add(time.Second)
			running[0].End(now, Usage{Output: 100})
			running = running[1:]
			if len(waiting) > 0 {
				now = now.Add(10 * time.Millisecond)
				waiting[0].FirstToken(now)
				running, waiting = append(running, waiting[0]), waiting[1:]
			}
		}
		for range limit + 3 {
			place()
		}
		for range 10 {
			end()
			place()
		}
		if got := f.replicas[replicas[0]].slots.limit(); got != limit {
			t.Errorf("%d slots learned, want %d", got, limit)
		}
		if e := f.Explain(now, chat(1, 100), replicas)[0]; e.Admission == 0 {
			t.Errorf("no wait for one of %d slots: %+v", limit, e)
		}
	}
}

// TestNoSlotsAreLearned has first tokens come after others have ended, as late
// as their prefills take.
func TestNoSlotsAreLearned(t *testing.T) {
	f := newTestFleet()
	replicas := addresses(1)
	now := at(0)
	var running []*Booking
	for i := range 200 {
		b := f.Place(now, chat(uint64(i), 20_000), replicas)
		now = now.Add(seconds(b.Estimate.Prefill))
		if len(running) == 3 {
			running[0].End(now.Add(-10*time.Millisecond), Usage{Output: 100})
			running = running[1:]
		}
		b.FirstToken(now)
		running = append(running, b)
	}
	if got := f.replicas[replicas[0]].slots.limit(); got != 0 {
		t.Errorf("%d slots learned, want none", got)
	}
}

func TestReportedSlotsCount(t *testing.T) {
	f := newTestFleet()
	replicas := addresses(2)
	report := silent()
	report.Slots = 1
	f.Report(at(0), replicas[0], report)
	f.Place(at(0), chat(1, 100), replicas[:1])
	for range 5 {
		if b := f.Place(at(0), chat(1, 100), replicas); b.Estimate.Replica != replicas[1] {
			t.Fatalf("placed behind the only slot: %+v", b.Estimate)
		}
	}
}
