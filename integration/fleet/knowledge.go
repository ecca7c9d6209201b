package fleet

import (
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// Knowledge says what a router gets to know of the replicas, besides its own
// placements and the times at which answers begin and end. The zero value is
// nothing.
type Knowledge struct {
	// Usage lets answers tell what the engine can: how many tokens the prompt
	// had, how many of them were cached, how long it was computed.
	Usage bool
	// Metrics is the interval at which every replica is asked for its metrics;
	// 0 for never. Phases differ, and intervals are jittered by a tenth.
	Metrics time.Duration
	// Delay is from the moment that metrics speak of until the router has them,
	// give or take a half; less than half of the interval.
	Delay time.Duration
	// Capacity is what the operator configured, as a multiple of the true
	// capacity of the first replica; 0 leaves it to be learned.
	Capacity float64
	// Speeds tells how fast each replica is instead of leaving it to be learned.
	Speeds bool

	truth truth // for the oracle alone
}

// RouterVisible is what a router sees in front of engines as they are commonly
// set up, and what a run goes by unless it says otherwise.
var RouterVisible = Knowledge{Usage: true, Metrics: time.Second, Delay: 50 * time.Millisecond}

// speedOf is a profile in the terms of package selection.
func speedOf(p engine.Profile) selection.Speed {
	return selection.Speed{
		Fixed:           p.StepBase.Seconds(),
		PerToken:        p.PerPrefillToken.Seconds(),
		PerTokenContext: p.PerAttention * 1e-9,
		Step:            p.StepFloor.Seconds(),
		PerSequence:     p.PerSequence.Seconds(),
		PerContextToken: p.PerKVToken.Seconds(),
	}
}
