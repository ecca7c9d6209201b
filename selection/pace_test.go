package selection

import (
	"math"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	repeat := func(n int, taken ...float64) (all []float64) {
		for range n {
			all = append(all, taken...)
		}
		return all
	}
	tests := []struct {
		name  string
		taken []float64 // of work of one second
		least float64
		most  float64
	}{
		{"nothing known", nil, 1, 1},
		{"one observation tells little", []float64{3}, 1.2, 1.6},
		{"three times slower is known after 20", repeat(20, 3), 2.6, 3},
		{"four times faster is known after 40", repeat(40, 0.25), 0.25, 0.4},
		{"batches share their time", repeat(20, 4, 0, 0, 0), 0.9, 1.1},
		{"one outlier among many", append(repeat(63, 1), 1e6), 1, 1.2},
		{"a change shows", append(repeat(200, 1), repeat(128, 3)...), 2.6, 3},
		{"nonsense is bounded", repeat(1000, 1e12), 1, maxPace},
		{"negative is nothing", []float64{-1}, 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p pace
			for _, taken := range test.taken {
				p.observe(taken, 1, 1)
			}
			if got := p.factor(1, 1); got < test.least || got > test.most || math.IsNaN(got) {
				t.Errorf("pace %g, want %g to %g", got, test.least, test.most)
			}
		})
	}
}

func TestPaceIsTheFleetsAtFirst(t *testing.T) {
	var own, fleet pace
	for range 200 {
		fleet.observe(5, 1, 1)
	}
	if got := own.among(&fleet, 1); math.Abs(got-5) > 0.3 {
		t.Errorf("pace of a newcomer is %g, want the fleet's 5", got)
	}
	for range 30 {
		own.observe(1, 1, 5)
	}
	if got := own.among(&fleet, 1); got > 1.8 {
		t.Errorf("pace is %g after 30 observations of 1", got)
	}
}

// TestSlowReplicaIsRecognised gives equal replicas equal work, one of which
// takes three times as long: fifty answers later it gets at most a third.
func TestSlowReplicaIsRecognised(t *testing.T) {
	f := newTestFleet()
	replicas := addresses(4)
	w := newVirtual(f, replicas)
	w.slow[replicas[0]] = 3
	for i := range 50 * len(replicas) {
		w.serve(chat(uint64(i), 4000), Usage{Output: 100})
	}
	clear(w.computed)
	for i := range 200 {
		w.serve(chat(uint64(1000+i), 4000), Usage{Output: 100})
	}
	for _, s := range f.Status(w.now) {
		if slow := s.Replica == replicas[0]; slow != (s.PrefillPace > 2) {
			t.Errorf("%s is believed to take %.2f times the usual time", s.Replica, s.PrefillPace)
		}
	}
	others := (w.computed[replicas[1]] + w.computed[replicas[2]] + w.computed[replicas[3]]) / 3
	if slow := w.computed[replicas[0]]; slow > others*4/10 {
		t.Errorf("the slow replica computed %d tokens, the others %d on average", slow, others)
	}
}

// TestQueuedPromptsDoNotSlowDecoding has answers decode alone, as fast as usual,
// while many long prompts wait: they are no context of the batch yet.
func TestQueuedPromptsDoNotSlowDecoding(t *testing.T) {
	f, replicas := newTestFleet(), addresses(1)
	now := at(0)
	for i := range uint64(100) {
		f.Place(now, chat(1000+i, 20_000), replicas)
	}
	for i := range uint64(50) {
		b := f.Place(now, chat(i, 100_000), replicas)
		now = now.Add(time.Second)
		b.FirstToken(now)
		now = now.Add(seconds(99 * DefaultSpeed.interToken(1, 100_000)))
		b.End(now, Usage{Output: 100})
	}
	if pace := f.Status(now)[0].DecodePace; !(pace >= 0.95 && pace <= 1.05) {
		t.Errorf("decoding is believed to take %.2f times the usual time", pace)
	}
}

// TestQueueDrainsAtThePaceItHasShown has first tokens come three times as far apart
// as the prefills say, as when an engine runs out of places in its batch.
func TestQueueDrainsAtThePaceItHasShown(t *testing.T) {
	f, replicas := newTestFleet(), addresses(1)
	var queue []*Booking
	for i := range uint64(400) {
		queue = append(queue, f.Place(at(0), chat(i, 2000), replicas))
	}
	now := at(0)
	for _, b := range queue[:300] {
		now = now.Add(3 * b.prefill)
		b.FirstToken(now)
		b.End(now, Usage{})
	}
	each := queue[399].prefill.Seconds()
	if e := f.Explain(now, chat(1000, 2000), replicas)[0]; !(e.Wait >= 0.95*300*each && e.Wait <= 1.05*300*each) {
		t.Errorf("%g s behind 100 prefills of %g that took 3 times as long before", e.Wait, each)
	}
}

// TestPaceOfNoQueue has lone prompts answered late, as over a slow network, and
// others behind one whose first token is not seen: neither tells how fast a queue
// drains. The engine says itself how long its prefills take.
func TestPaceOfNoQueue(t *testing.T) {
	for _, unseen := range []bool{false, true} {
		f, replicas := newTestFleet(), addresses(1)
		now := at(0)
		for i := range uint64(100) {
			before := chat(1000+i, 2000)
			before.Streamed = false
			if unseen {
				defer f.Place(now, before, replicas).End(now, Usage{})
			}
			b := f.Place(now, chat(2000+i, 2000), replicas)
			now = now.Add(time.Second)
			f.Status(now) // by now the first prefill is taken to be done
			b.FirstToken(now)
			b.End(now, Usage{Prefill: b.prefill.Seconds()})
		}
		if pace := f.Status(now)[0].QueuePace; pace != 1 {
			t.Errorf("unseen %v: the queue is believed to take %.2f times as long as its prefills", unseen, pace)
		}
	}
}

// TestIdleReplicasShareColdPrompts holds that a replica of a fast fleet that has been
// measured does not seem faster than one that has not, or it would get everything.
func TestIdleReplicasShareColdPrompts(t *testing.T) {
	for _, slow := range []float64{0.3, 1, 3} {
		v := newVirtual(newTestFleet(), addresses(2))
		for _, r := range v.replicas {
			v.slow[r] = slow
		}
		for i := range uint64(200) {
			v.serve(chat(i, 2000), Usage{Output: 10})
			v.now = v.now.Add(time.Minute)
			v.catchUp(v.now)
		}
		for _, r := range v.fleet.Status(v.now) {
			if r.Booked < 60 {
				t.Errorf("%d of 200 cold prompts on %s, at %g of the usual time", r.Booked, r.Replica, slow)
			}
		}
	}
}
