package selection

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestCapacityConverges serves prompts of Zipf popularity from caches whose size
// the fleet is told wrong, and expects it to find out.
func TestCapacityConverges(t *testing.T) {
	const capacity = 64_000
	for _, factor := range []float64{0.25, 0.5, 1, 2, 4} {
		for _, told := range []string{"usage", "counters"} {
			t.Run(fmt.Sprintf("%g times, %s", factor, told), func(t *testing.T) {
				f := newTestFleet()
				w := newVirtual(f, addresses(2))
				for _, r := range w.replicas {
					w.caches[r] = newLRU(capacity)
				}
				zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 20, 150)
				var promised, found, asked float64
				for i := range 2000 {
					request := chat(zipf.Uint64(), 3000)
					request.Capacity = int(factor * capacity)
					b := w.serve(request, Usage{Output: 10, Checked: told == "usage"})
					if told == "counters" && i%10 == 0 {
						w.report()
					}
					if i >= 1000 {
						hit := w.open[len(w.open)-1].found
						promised += math.Abs(float64(b.Estimate.Matched - hit))
						found += float64(hit)
						asked += float64(request.Tokens)
					}
				}
				if promised > asked/10 {
					t.Errorf("promises are off by %.0f %% of the prompts", 100*promised/asked)
				}
				for _, s := range f.Status(w.now) {
					if s.Capacity < capacity*7/10 || s.Capacity > capacity*14/10 {
						t.Errorf("%s is believed to hold %d tokens", s.Replica, s.Capacity)
					}
				}
			})
		}
	}
}

// TestRoundingTeachesNoCapacity lets answers differ from the promises of the
// believed capacity, and agree with those of a smaller one, by some tokens.
func TestRoundingTeachesNoCapacity(t *testing.T) {
	const believed, smaller = 16_384, 2896
	for _, tt := range []struct {
		name   string
		missed float64 // of what the believed capacity promises
		want   bool
	}{
		{"rounding", 5, false},
		{"loss", 128, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const prompt = 731
			promised := func(i int) float64 {
				switch {
				case i < capacityNear(smaller):
					return 0
				case i == capacityNear(smaller):
					return prompt - tt.missed
				default:
					return prompt
				}
			}
			var c capacityBelief
			for range 20 {
				c.learn(promised, prompt, prompt-tt.missed)
			}
			if got, ok := c.better(believed); ok != tt.want {
				t.Errorf("%d tokens are believed better: %t, want %t", got, ok, tt.want)
			}
		})
	}
}

// TestLossIsNoticed empties a cache behind the router's back.
func TestLossIsNoticed(t *testing.T) {
	for _, told := range []string{"usage", "counters"} {
		t.Run(told, func(t *testing.T) {
			f := newTestFleet()
			w := newVirtual(f, addresses(1))
			send := func(name uint64) (promised, found int) {
				b := w.serve(chat(name, 4000), Usage{Output: 10, Checked: told == "usage"})
				found = w.open[len(w.open)-1].found
				w.finish()
				w.report()
				return b.Estimate.Matched, found
			}
			for round := range 3 {
				for name := range uint64(20) {
					if promised, found := send(name); round == 2 && promised < found*9/10 {
						t.Fatalf("promised %d of %d", promised, found)
					}
				}
			}
			w.caches[w.replicas[0]].clear()
			broken := 0
			for name := range uint64(20) {
				if promised, found := send(name); promised-found > 2000 {
					broken++
				}
			}
			if most := map[string]int{"usage": 3, "counters": 6}[told]; broken == 0 || broken > most {
				t.Errorf("%d promises were broken after the loss, want 1 to %d", broken, most)
			}
			if promised, found := send(10); promised < found*8/10 {
				t.Errorf("promised %d of %d found afterwards", promised, found)
			}
		})
	}
}

// TestOneMissIsForgiven lets one answer find nothing, as engines do for requests
// that want the probabilities of prompt tokens.
func TestOneMissIsForgiven(t *testing.T) {
	f := newTestFleet()
	r := addresses(1)
	send := func(cached int) *Booking {
		b := f.Place(at(0), chat(1, 4000), r)
		b.FirstToken(at(0))
		b.End(at(0), Usage{Prompt: 4000, Output: 10, Cached: cached, Checked: true})
		return b
	}
	send(0)
	for range 10 {
		send(3990)
	}
	send(0)
	send(3990)
	if b := send(3990); b.Estimate.Matched < 3500 {
		t.Errorf("only %d tokens promised after one miss", b.Estimate.Matched)
	}
}

// TestPrefixCachingOff promises less and less to a replica that finds nothing.
func TestPrefixCachingOff(t *testing.T) {
	f := newTestFleet()
	var b *Booking
	for range 100 {
		b = f.Place(at(0), chat(1, 4000), addresses(1))
		b.FirstToken(at(0))
		b.End(at(0), Usage{Prompt: 4000, Output: 10, Checked: true})
	}
	if b.Estimate.Matched > 400 {
		t.Errorf("%d tokens are still promised after 100 misses", b.Estimate.Matched)
	}
}

// TestRestartWithASmallerCache starts a replica anew with a cache that holds a
// quarter of what it held before. What it proved to hold then says nothing now.
func TestRestartWithASmallerCache(t *testing.T) {
	f := newTestFleet()
	w := newVirtual(f, addresses(1))
	replica := w.replicas[0]
	doubts := 0
	rounds := func(n int) {
		for range n {
			for name := range uint64(20) {
				w.serve(chat(name, 4000), Usage{Output: 10, Checked: true})
				w.finish()
				if f.Status(w.now)[0].Doubted {
					doubts++
				}
			}
		}
	}
	rounds(3)
	w.caches[replica] = newLRU(20_000)
	w.free[replica] = w.now
	f.Report(w.now, replica, &Report{
		At: w.now, Restarted: true, Running: math.NaN(), Waiting: math.NaN(), CapacityTokens: math.NaN(),
		Slots: math.NaN(), PrefixQueries: math.NaN(), PrefixHits: math.NaN(),
	})
	rounds(4)
	if doubts > 1 {
		t.Errorf("doubted after %d answers", doubts)
	}
	if s := f.Status(w.now)[0]; s.Capacity >= 80_000 {
		t.Errorf("believed to hold %d tokens, all that it was sent", s.Capacity)
	}
}
