package selection

import (
	"math"
	"testing"
	"time"
)

// TestPrice holds the terms of the price against what docs/decision.md says of
// them, long after the last arrival, when no later requests are expected.
func TestPrice(t *testing.T) {
	const near = 1e-6
	for _, tt := range []struct {
		name            string
		slots           float64
		queued, running int
		factor          float64
	}{
		{"idle", math.NaN(), 0, 0, 2},
		{"decoding", math.NaN(), 0, 8, 2 + 3*2},
		{"a large batch", math.NaN(), 0, 99, 2 + 3*9},
		{"queued", math.NaN(), 2, 0, 2 + 2.25*2},
		{"both", math.NaN(), 1, 3, 2 + 2.25 + 3*1},
		{"private slots", 4, 0, 0, 2 + 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newPrivateFleet(tt.slots)
			for i := range tt.running {
				f.begin(chat(uint64(i), 1280))
			}
			for range tt.queued {
				f.Place(f.now, chat(100, 1280), f.replicas)
			}
			e := f.Explain(f.now.Add(time.Hour), chat(200, 1280), f.replicas)[0]
			if !(math.Abs(e.Factor-tt.factor) <= near) {
				t.Errorf("a second of prefill counts %g, want %g", e.Factor, tt.factor)
			}
			if want := e.Wait + e.Prefill*e.Factor + 0.15*e.Decode; e.Decode == 0 || !(math.Abs(e.Cost-want) <= near) {
				t.Errorf("cost %g, want %g of %+v", e.Cost, want, e)
			}
		})
	}
}

// TestPriceOfLaterRequests holds the term of those that arrive until the queue has
// drained against its formula, with what was booked at one time as their rate.
func TestPriceOfLaterRequests(t *testing.T) {
	for _, tt := range []struct {
		name          string
		booked        int
		tokens, price int // of the booked prompts, and of the one that is priced
		queued        int // of those booked, still there
	}{
		{"few", 20, 200, 2000, 0},
		{"behind a queue", 20, 2000, 2000, 20},
		{"busy beyond 0.9", 20, 100_000, 2000, 0},
		{"far more than count", 400, 200, 100_000, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newPrivateFleet(math.NaN())
			f.now = at(0)
			for i := range tt.booked {
				if b := f.Place(f.now, chat(uint64(i), tt.tokens), f.replicas); i >= tt.queued {
					b.End(f.now, Usage{})
				}
			}
			e := f.Explain(f.now, chat(1000, tt.price), f.replicas)[0]
			seconds := 20 / math.Ln2 // the mean life of what has a half-life of 20
			one := f.Explain(f.now, chat(2000, tt.tokens), f.replicas)[0].Prefill
			lambda, rho := float64(tt.booked)/seconds, min(0.9, float64(tt.booked)*one/seconds)
			later := lambda * (e.Wait + e.Prefill) / (1 - rho)
			want := 2 + 2.25*float64(tt.queued) + later/(1+later/32)
			if !(math.Abs(e.Factor-want) <= 1e-6*want) {
				t.Errorf("a second of prefill counts %g, want %g", e.Factor, want)
			}
		})
	}
}
