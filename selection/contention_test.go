package selection

import (
	"math"
	"testing"
	"time"
)

// TestContention holds how the slope of the hit curve is measured: by what would be
// lost with a quarter of a doubling less, or found with a doubling more, against what
// was added.
func TestContention(t *testing.T) {
	const capacity, prompt, output = 64 * 1024, 8000, 200
	at := capacityNear(capacity)
	for name, test := range map[string]struct {
		half, below, held, twice uint32 // tokens promised by that much of the capacity
		lost                     float64
	}{
		"nothing held":           {0, 0, 0, 0, 0},
		"far below the capacity": {2000, 6000, 6000, 6000, 0},
		"just below":             {2000, 6000, 7000, 7000, 4 * 1000},
		"beyond":                 {7000, 7000, 7000, 7500, 500},
		"more beyond than below": {6500, 6900, 7000, 7500, 500},
		"longer than estimated":  {6000, 6000, 9000, 9000, 4 * 3000},
	} {
		t.Run(name, func(t *testing.T) {
			p := promise{first: at - triesBelow}
			for i := range p.held {
				switch {
				case i < triesBelow-1:
					p.held[i] = test.half
				case i < triesBelow:
					p.held[i] = test.below
				case i < tries-1:
					p.held[i] = test.held
				default:
					p.held[i] = test.twice
				}
			}
			var c contention
			for range 3 {
				c.learn(capacity, prompt, p, output)
			}
			added := max(0, prompt-float64(test.held)) + output
			if want := test.lost / (test.lost + math.Ln2*added); !(math.Abs(c.share()-want) < 1e-9) {
				t.Errorf("contention %g, want %g", c.share(), want)
			}
		})
	}
}

// TestContentionIsOfPrompts holds that a request of which the index knows no block
// says nothing of it.
func TestContentionIsOfPrompts(t *testing.T) {
	f, now, replicas := full(9)
	before := f.contention
	b := f.Place(now, &Request{Model: "m", Tokens: 5000, Streamed: true}, replicas[:1])
	b.FirstToken(now)
	b.End(now, Usage{Output: 10})
	if f.contention != before {
		t.Errorf("contention %+v, want %+v", f.contention, before)
	}
}

// TestReplicasWithoutPrefixCachingDoNotContend holds that what an engine never keeps is
// no reason to prefer another one.
func TestReplicasWithoutPrefixCachingDoNotContend(t *testing.T) {
	f, now, replicas := full(9)
	for _, r := range replicas[:2] {
		report := silent()
		report.CapacityTokens, report.NoPrefixCaching = 20_000, true
		f.Report(now, r, report)
	}
	before := f.contention
	b := f.Place(now, chat(0, 2000), replicas[:1])
	b.FirstToken(now)
	b.End(now, Usage{Output: 10})
	if f.contention != before {
		t.Errorf("contention %+v, want %+v", f.contention, before)
	}
	for _, r := range f.Status(now)[:3] {
		if r.Pressure != 1 {
			t.Errorf("pressure %g on %s, want 1", r.Pressure, r.Replica)
		}
	}
}

// TestEvictionAge follows a cache that is filled for the first time, and then holds
// exactly what is used in a loop, so that nothing lies beyond.
func TestEvictionAge(t *testing.T) {
	f, now, replicas := newTestFleet(), at(0), addresses(1)
	serve := func(name uint64) {
		now = now.Add(10 * time.Second)
		request := chat(name, 2000)
		request.Capacity = 20_000
		b := f.Place(now, request, replicas)
		b.FirstToken(now)
		b.End(now, Usage{})
	}
	for name := range uint64(9) {
		serve(name)
	}
	if age := f.Status(now)[0].EvictionAge; age != 0 {
		t.Errorf("%g s with room, want 0", age)
	}
	for i := range uint64(100) {
		serve((9 + i) % 10)
		if age := f.Status(now)[0].EvictionAge; !(age >= 70 && age <= 100) {
			t.Fatalf("%g s after %d more prompts, want about 90", age, i)
		}
	}
}

func TestPressure(t *testing.T) {
	all, none := contention{sloped: 1}, contention{added: 1}
	for name, test := range map[string]struct {
		contention     contention
		turnover, mean float64
		want           float64
	}{
		"before anything is known": {contention{}, 2, 1, 1},
		"no cache is full":         {all, 0, 0, 1},
		"like the mean":            {all, 0.1, 0.1, 1},
		"half again as often":      {all, 0.15, 0.1, math.Sqrt(1.5)},
		"much more often":          {all, 1, 0.01, math.Sqrt2},
		"with room":                {all, 0, 0.1, math.Sqrt2 / 2},
		"nobody contends":          {none, 1, 0.01, 1},
		"half of it":               {contention{sloped: 1, added: 1}, 0.2, 0.1, math.Pow(2, 0.25)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.contention.pressure(test.turnover, test.mean); !(math.Abs(got-test.want) < 1e-9) {
				t.Errorf("pressure %g, want %g", got, test.want)
			}
		})
	}
}

// full is a fleet of four replicas with 20,000 tokens each: two shared caches that are
// full, the second one used half as often, one with room, and one with private slots.
func full(prompts uint64) (f *Fleet, now time.Time, replicas []string) {
	f, now, replicas = newTestFleet(), at(0), addresses(4)
	for i, r := range replicas {
		report := silent()
		report.CapacityTokens, report.Slots, report.PrivateSlots = 20_000, 4, i == 3
		f.Report(now, r, report)
	}
	serve := func(replica int, name uint64) {
		b := f.Place(now, chat(name, 2000), replicas[replica:replica+1])
		b.FirstToken(now)
		b.End(now, Usage{Output: 10})
	}
	for i := range uint64(3000) {
		now = now.Add(10 * time.Second)
		serve(0, i%prompts)
		if i%2 == 0 {
			serve(1, 1<<30+i/2%prompts)
			serve(2, 1<<31)
			serve(3, 1<<31+i)
		}
	}
	return f, now, replicas
}

// TestPriceOfEviction holds what evicting others counts: the more the sooner a cache is
// filled anew, if the fleet's requests contend for room in caches that they just fit
// into or no longer do, and nothing if what is evicted is never asked for again.
func TestPriceOfEviction(t *testing.T) {
	for name, test := range map[string]struct {
		prompts   uint64  // of 2,000 tokens, in a loop
		age       float64 // in seconds, of what the first replica evicts next
		contended bool
	}{
		"just fit":          {9, 2000, true}, // beside 200 answers of 10 tokens
		"no longer fit":     {15, 100, true},
		"never asked again": {1 << 20, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, now, replicas := full(test.prompts)
			status := f.Status(now)
			for i, want := range []float64{test.age, 2 * test.age, 0, 0} {
				if age := status[i].EvictionAge; !(math.Abs(age-want) <= 0.15*want) {
					t.Errorf("%g s since replica %d used what it evicts next, want about %g", age, i, want)
				}
			}
			fast, slow, room, private := status[0].Pressure, status[1].Pressure, status[2].Pressure, status[3].Pressure
			if private != 1 {
				t.Errorf("pressure %g on private slots", private)
			}
			switch {
			case test.contended && !(1.2 < fast && fast < math.Sqrt2 && 0.95 < slow && slow < 1.05 && 0.7 < room && room < 0.85):
				t.Errorf("pressure %g where tokens are evicted soon, %g where late, %g with room", fast, slow, room)
			case !test.contended && !(math.Abs(fast-1) < 0.01 && math.Abs(room-1) < 0.01):
				t.Errorf("pressure %g where what is evicted never comes back, %g with room", fast, room)
			}
			for i, e := range f.Explain(now, chat(1<<40, 1280), replicas[:3]) {
				alone := f.Explain(now, chat(1<<40, 1280), replicas[i:i+1])[0] // without others it is like the mean
				if later := e.Factor/status[i].Pressure - 2; later < 0 || later > 0.1 || !(alone.Factor >= 2 && alone.Factor < 2.1) {
					t.Errorf("a second of prefill counts %g with pressure %g, %g alone", e.Factor, status[i].Pressure, alone.Factor)
				}
			}
		})
	}
}

// TestPressureMultipliesAllThatIsDelayed holds that a second of prefill counts more
// under pressure for the requests that it delays, too.
func TestPressureMultipliesAllThatIsDelayed(t *testing.T) {
	f, now, replicas := full(9)
	for _, r := range replicas[:3] {
		for i := range uint64(3) {
			b := f.Place(now, chat(1<<41+i, 1280), []string{r})
			if i > 0 {
				b.FirstToken(now)
			}
		}
	}
	now = now.Add(time.Hour) // no later requests are expected
	prices, status := f.Explain(now, chat(1<<40, 1280), replicas[:3]), f.Status(now)
	for i := range prices {
		want := status[i].Pressure * (2 + 2.25 + 3*(math.Sqrt(3)-1))
		if got := prices[i].Factor; !(math.Abs(got-want) < 1e-6) {
			t.Errorf("a second of prefill counts %g under a pressure of %g, want %g", got, status[i].Pressure, want)
		}
	}
}

// TestContentionTakesNoAbsurdAnswer holds that one answer that claims to be longer than
// any cache does not drown all others.
func TestContentionTakesNoAbsurdAnswer(t *testing.T) {
	f, now, replicas := full(9)
	before := f.contention.share()
	b := f.Place(now, chat(0, 2000), replicas[:1])
	b.FirstToken(now)
	b.End(now, Usage{Output: 1 << 48})
	if after := f.contention.share(); !(after > 0.9*before && before > 0.9) {
		t.Errorf("contention %g after an absurd answer, %g before", after, before)
	}
}

// TestWorkingSetSpreads holds that prompts which come back find room where one cache
// is too small for them: in fleets at the usual speed and at twice that, with seconds
// and with a minute between two requests.
func TestWorkingSetSpreads(t *testing.T) {
	const capacity = 40_000
	for _, replicas := range []int{2, 4} {
		for _, slow := range []float64{0.5, 1} {
			for _, gap := range []time.Duration{3 * time.Second, time.Minute} {
				v := newVirtual(newTestFleet(), addresses(replicas))
				for _, r := range v.replicas {
					v.caches[r], v.slow[r] = newLRU(capacity), slow
				}
				prompts := 3 * replicas * capacity / 4 / 2010 // three quarters of all caches
				found := 0
				for i := range 30 * prompts {
					request := chat(uint64(i%prompts)+1, 2000)
					request.Capacity = capacity
					v.serve(request, Usage{Output: 10})
					if i >= 15*prompts {
						found += v.open[len(v.open)-1].found
					}
					v.now = v.now.Add(gap)
					v.catchUp(v.now)
				}
				if hits := float64(found) / float64(15*prompts*2000); hits < 0.95 {
					t.Errorf("%d replicas at %g of the usual time, a request in %v: hit rate %g", replicas, slow, gap, hits)
				}
			}
		}
	}
}
