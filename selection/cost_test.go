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
		{"idle", math.NaN(), 0, 0, 1},
		{"decoding", math.NaN(), 0, 9, 1 + 1.5*3},
		{"a large batch", math.NaN(), 0, 100, 1 + 1.5*10},
		{"queued", math.NaN(), 2, 0, 1 + 2*2.5},
		{"both", math.NaN(), 1, 4, 1 + 2.5 + 1.5*2},
		{"private slots", 4, 0, 0, 8},
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
			if math.Abs(e.Factor-tt.factor) > near {
				t.Errorf("a second of prefill counts %g, want %g", e.Factor, tt.factor)
			}
			if want := e.Wait + e.Prefill*e.Factor + 0.1*e.Decode; e.Decode == 0 || math.Abs(e.Cost-want) > near {
				t.Errorf("cost %g, want %g of %+v", e.Cost, want, e)
			}
		})
	}
}
