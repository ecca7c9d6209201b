package workload

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Tenants is an open stream of conversations from many customers who have nothing
// in common: each has prompts of its own, lengths of its own and its own rhythm.
type Tenants struct {
	// Rate is the number of requests per second over Duration, Pace how it changes.
	Rate     float64
	Pace     Pace
	Duration time.Duration
	// Tenants is how many there are. The k-th has a weight of 1/(k+1)^Skew; the
	// largest public trace of tenants has an exponent of about 0.9.
	Tenants int
	Skew    float64
	// Prompts is the most system prompts that a tenant has; he has at least one.
	Prompts int
	// Each tenant has medians of his own, drawn evenly on a logarithmic scale
	// between these bounds: of system prompts, of what a turn adds, of answers.
	PromptTokens, OwnTokens, AnswerTokens [2]int
	// MaxTurns bounds the turns of a conversation. A tenant's are at most so many,
	// or 1 for half of the tenants.
	MaxTurns int
	// Think is the mean time between an answer and the next turn.
	Think time.Duration
	// Active is the share of the time in which a tenant sends, in stretches of
	// Period on average; the busiest quarter of the tenants always sends.
	Active float64
	Period time.Duration
}

// tenant is one of them.
type tenant struct {
	prompts     []Segment
	own, answer int
	turns       int
	quiet       []time.Duration // when he stops and begins to send, in turn
}

// Workload draws the conversations; it is the same for the same seed.
func (t Tenants) Workload(seed uint64) *Workload {
	w := &Workload{Name: "tenants"}
	weights := cumulative(t.Tenants, t.Skew)
	share := 0.0
	for k := range t.Tenants {
		rng := rand.New(rand.NewPCG(seed, 0x7e4a<<32|uint64(k)))
		customer := t.tenant(rng, k)
		// Who sends half of the time sends twice as much then.
		sending := 1.0
		if customer.quiet != nil {
			sending = t.Active
		}
		rate := t.Rate * (weights[k] - share) / (float64(1+customer.turns) / 2) / sending
		share = weights[k]
		t.Pace.arrivals(rng, rate, t.Duration, func(at time.Duration) {
			if customer.sends(at) {
				w.Sessions = append(w.Sessions, t.conversation(rng, &customer, at))
			}
		})
	}
	slices.SortStableFunc(w.Sessions, func(a, b Session) int { return cmp.Compare(a.Start, b.Start) })
	return w
}

func (t Tenants) tenant(rng *rand.Rand, number int) tenant {
	c := tenant{own: between(rng, t.OwnTokens), answer: between(rng, t.AnswerTokens), turns: 1}
	median := between(rng, t.PromptTokens)
	for range 1 + rng.IntN(t.Prompts) {
		c.prompts = append(c.prompts, Segment{rng.Uint64(), System, lognormal(rng, median)})
	}
	if rng.IntN(2) == 0 {
		c.turns = 2 + rng.IntN(t.MaxTurns-1)
	}
	if 4*number < t.Tenants {
		return c
	}
	on, off := t.Active*float64(t.Period), (1-t.Active)*float64(t.Period)
	for at := time.Duration(-rng.Float64() * float64(t.Period)); at < t.Duration; {
		at += time.Duration(rng.ExpFloat64() * on)
		c.quiet = append(c.quiet, at)
		at += time.Duration(rng.ExpFloat64() * off)
		c.quiet = append(c.quiet, at)
	}
	return c
}

// sends tells whether the tenant is active at a time.
func (c *tenant) sends(at time.Duration) bool {
	i, found := slices.BinarySearch(c.quiet, at)
	if found {
		i++
	}
	return i%2 == 0
}

func (t Tenants) conversation(rng *rand.Rand, c *tenant, at time.Duration) Session {
	s := Session{Start: at, Shared: []Segment{c.prompts[rng.IntN(len(c.prompts))]}}
	for i := range 1 + rng.IntN(c.turns) {
		turn := Turn{
			Added:  []Segment{{rng.Uint64(), User, lognormal(rng, c.own)}},
			Answer: Segment{rng.Uint64(), Assistant, lognormal(rng, c.answer)},
		}
		if i > 0 {
			turn.Think = time.Duration(rng.ExpFloat64() * float64(t.Think))
		}
		s.Turns = append(s.Turns, turn)
	}
	return s
}

// between draws a number evenly on a logarithmic scale.
func between(rng *rand.Rand, bounds [2]int) int {
	low, high := math.Log(float64(bounds[0])), math.Log(float64(bounds[1]))
	return int(math.Exp(low + rng.Float64()*(high-low)))
}
