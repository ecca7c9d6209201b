package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// Prompts is an open stream of single requests, each a shared prefix followed by
// a part of its own.
type Prompts struct {
	Name string
	// Rate is the number of requests per second, Poisson, over Duration; Pace says
	// how it changes.
	Rate     float64
	Pace     Pace
	Duration time.Duration
	// Prefixes is the number of shared prefixes, PrefixTokens the length of each.
	// Prefix k is chosen with a weight of 1/(k+1)^Skew.
	Prefixes, PrefixTokens int
	Skew                   float64
	// OwnTokens and AnswerTokens are medians; both have a lognormal spread of 0.6.
	OwnTokens, AnswerTokens int

	// From HotFrom to HotUntil a share of HotShare of the requests has the last
	// prefix, which is rare otherwise.
	HotFrom, HotUntil time.Duration
	HotShare          float64
	// DocumentShare of the requests are single documents of DocumentTokens
	// tokens on average that share nothing.
	DocumentShare  float64
	DocumentTokens int
}

// Workload draws the requests; it is the same for the same seed.
func (p Prompts) Workload(seed uint64) *Workload {
	rng := rand.New(rand.NewPCG(seed, 0x09e7))
	w := &Workload{Name: p.Name}
	first := rng.Uint64()
	weights := cumulative(p.Prefixes, p.Skew)
	p.Pace.arrivals(rng, p.Rate, p.Duration, func(at time.Duration) {
		w.Sessions = append(w.Sessions, p.session(rng, first, weights, at))
	})
	return w
}

func (p Prompts) session(rng *rand.Rand, first uint64, weights []float64, at time.Duration) Session {
	own := lognormal(rng, p.OwnTokens)
	answer := Segment{rng.Uint64(), Assistant, lognormal(rng, p.AnswerTokens)}
	prefix, hot, document := pick(rng, weights), rng.Float64(), rng.Float64()
	s := Session{Start: at}
	switch {
	case document < p.DocumentShare:
		own = p.DocumentTokens/2 + rng.IntN(p.DocumentTokens+1)
	case p.Prefixes > 0:
		if at >= p.HotFrom && at < p.HotUntil && hot < p.HotShare {
			prefix = p.Prefixes - 1
		}
		s.Shared = []Segment{{mixed(first + uint64(prefix)), System, p.PrefixTokens}}
	}
	s.Turns = []Turn{{Added: []Segment{{rng.Uint64(), User, own}}, Answer: answer}}
	return s
}

// cumulative weights of 1/(k+1)^skew, which sum to 1.
func cumulative(n int, skew float64) []float64 {
	sums := make([]float64, n)
	total := 0.0
	for k := range sums {
		total += math.Pow(float64(k+1), -skew)
		sums[k] = total
	}
	for k := range sums {
		sums[k] /= total
	}
	return sums
}

// pick draws an index by cumulative weights. It draws one number in any case.
func pick(rng *rand.Rand, sums []float64) int {
	u := rng.Float64()
	for k, sum := range sums {
		if u < sum {
			return k
		}
	}
	return len(sums) - 1
}

// mixed spreads a number over all its bits, so that tokens of segments with
// neighbouring numbers do not overlap.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
