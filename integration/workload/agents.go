package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// Agents is traffic of tool-using agents: a few kinds, each with its own tool
// schemas and system prompt, in conversations that grow with every turn, and a
// few long prompts that share nothing.
type Agents struct {
	// Users and Sessions are as in Workload.
	Users, Sessions int
	// Kinds of agents; kind k is chosen with a weight of 1/(k+1).
	Kinds int
	// ToolCount and ToolTokens are the tools of a kind and the tokens in the
	// description of each, SystemTokens the length of its system prompt.
	ToolCount, ToolTokens, SystemTokens int
	// MinTurns and MaxTurns bound the length of a conversation; all lengths
	// between them are equally likely.
	MinTurns, MaxTurns int
	// AddedTokens is the median of what a turn adds and AnswerTokens that of an
	// answer; both have a lognormal spread of 0.6.
	AddedTokens, AnswerTokens int
	// Think is the mean time between an answer and the next turn.
	Think time.Duration
	// Ramp is the time over which the users begin their first sessions, evenly.
	Ramp time.Duration
	// LongEvery makes one of so many sessions a single prompt of LongTokens
	// tokens on average that shares nothing; 0 for none.
	LongEvery, LongTokens int
}

// spread is the standard deviation of the logarithm of drawn lengths.
const spread = 0.6

// Workload draws the sessions; it is the same for the same seed.
func (a Agents) Workload(seed uint64) *Workload {
	rng := rand.New(rand.NewPCG(seed, 0xa6e475))
	kinds := make([][]Segment, a.Kinds)
	for k := range kinds {
		kinds[k] = []Segment{
			ToolSchemas(rng.Uint64(), a.ToolCount, a.ToolTokens),
			{rng.Uint64(), System, a.SystemTokens},
		}
	}
	w := &Workload{Name: "agents", Users: a.Users, Sessions: make([]Session, a.Sessions)}
	for i := range w.Sessions {
		if a.LongEvery > 0 && i%a.LongEvery == a.LongEvery-1 {
			w.Sessions[i] = a.long(rng)
		} else {
			w.Sessions[i] = a.conversation(rng, kinds)
		}
		if i < a.Users {
			w.Sessions[i].Turns[0].Think = a.Ramp * time.Duration(i) / time.Duration(a.Users)
		}
	}
	return w
}

func (a Agents) conversation(rng *rand.Rand, kinds [][]Segment) Session {
	s := Session{Shared: kinds[zipf(rng, len(kinds))]}
	turns := a.MinTurns + rng.IntN(a.MaxTurns-a.MinTurns+1)
	for range turns {
		s.Turns = append(s.Turns, a.turn(rng))
	}
	return s
}

func (a Agents) turn(rng *rand.Rand) Turn {
	return Turn{
		Think:  a.think(rng),
		Added:  []Segment{{rng.Uint64(), User, lognormal(rng, a.AddedTokens)}},
		Answer: Segment{rng.Uint64(), Assistant, lognormal(rng, a.AnswerTokens)},
	}
}

func (a Agents) long(rng *rand.Rand) Session {
	tokens := a.LongTokens/2 + rng.IntN(a.LongTokens+1)
	return Session{Turns: []Turn{{
		Think:  a.think(rng),
		Added:  []Segment{{rng.Uint64(), User, tokens}},
		Answer: Segment{rng.Uint64(), Assistant, lognormal(rng, a.AnswerTokens)},
	}}}
}

func (a Agents) think(rng *rand.Rand) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(a.Think))
}

// lognormal draws a length with that median, at most five times as much.
func lognormal(rng *rand.Rand, median int) int {
	n := float64(median) * math.Exp(spread*rng.NormFloat64())
	return max(1, min(int(n), 5*median))
}

// zipf draws k below n with a weight of 1/(k+1).
func zipf(rng *rand.Rand, n int) int {
	total := 0.0
	for k := range n {
		total += 1 / float64(k+1)
	}
	u := rng.Float64() * total
	for k := range n {
		if u -= 1 / float64(k+1); u < 0 {
			return k
		}
	}
	return n - 1
}
