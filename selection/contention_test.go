package selection

import (
	"math"
	"testing"
)

// TestContention holds how the slope of the hit curve is measured: by what would be
// lost with a quarter of a doubling less, against what was added.
func TestContention(t *testing.T) {
	const capacity, prompt, output = 64 * 1024, 8000, 200
	at := capacityNear(capacity)
	promised := func(below, held uint32) (p promise) {
		p.first = at - triesBelow
		for i := range p.held {
			if p.held[i] = below; i >= triesBelow {
				p.held[i] = held
			}
		}
		return p
	}
	for name, test := range map[string]struct {
		below, held uint32
		want        float64
	}{
		"nothing held":          {0, 0, 0},
		"far from the capacity": {6000, 6000, 0},
		"near the capacity":     {6000, 7000, 1000 * 4 / math.Ln2 / (1000*4/math.Ln2 + 1200)},
		"all at the capacity":   {0, 8000, 8000 * 4 / math.Ln2 / (8000*4/math.Ln2 + 200)},
	} {
		t.Run(name, func(t *testing.T) {
			var c contention
			for range 3 {
				c.learn(capacity, prompt, promised(test.below, test.held), output)
			}
			if got := c.share(); !(math.Abs(got-test.want) < 1e-9) {
				t.Errorf("contention %g, want %g", got, test.want)
			}
		})
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
