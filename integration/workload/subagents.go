package workload

import (
	"math/rand/v2"
	"slices"
)

// Subagents is traffic of agents that now and then hand out work: an answer
// begins several sub-agents at once, each with the whole conversation so far in
// front of its own task. The parent goes on when all of them are done.
type Subagents struct {
	// Agents are the parents.
	Agents
	// Share of the parents' turns, the last ones excepted, begin sub-agents:
	// MinCount to MaxCount, all numbers equally likely.
	Share              float64
	MinCount, MaxCount int
	// MinSteps and MaxSteps bound the number of turns of a sub-agent. What turns
	// add and answer is as long as in the parents' conversations.
	MinSteps, MaxSteps int
}

// Workload draws the sessions; it is the same for the same seed.
func (s Subagents) Workload(seed uint64) *Workload {
	w := s.Agents.Workload(seed)
	w.Name = "sub-agents"
	rng := rand.New(rand.NewPCG(seed, 0x5ba6))
	for i := range w.Sessions {
		if parent := &w.Sessions[i]; len(parent.Shared) > 0 {
			s.spawn(rng, parent)
		}
	}
	return w
}

// spawn adds sub-agents to a parent's turns.
func (s Subagents) spawn(rng *rand.Rand, parent *Session) {
	said := slices.Clone(parent.Shared)
	for i := range parent.Turns[:len(parent.Turns)-1] {
		turn := &parent.Turns[i]
		said = append(append(said, turn.Added...), turn.Answer)
		if rng.Float64() >= s.Share {
			continue
		}
		for range s.MinCount + rng.IntN(s.MaxCount-s.MinCount+1) {
			turn.Spawn = append(turn.Spawn, s.child(rng, said[:len(said):len(said)]))
		}
	}
}

func (s Subagents) child(rng *rand.Rand, shared []Segment) Session {
	child := Session{Shared: shared}
	for i := range s.MinSteps + rng.IntN(s.MaxSteps-s.MinSteps+1) {
		turn := s.turn(rng)
		if i == 0 {
			turn.Think = 0
		}
		child.Turns = append(child.Turns, turn)
	}
	return child
}
