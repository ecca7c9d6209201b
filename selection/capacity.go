package selection

import "math"

// Capacities that are tried against what answers say: a replica's believed
// capacity and its neighbours, from an eighth of it up to the window in which
// blocks are remembered.
const (
	triesPerDoubling = 4
	triesBelow       = 3 * triesPerDoubling
	triesAbove       = triesPerDoubling // log2 of the window
	tries            = triesBelow + 1 + triesAbove
	leastCapacity    = 1024
	capacities       = 24*triesPerDoubling + 1 // up to 16 G tokens

	// capacityMemory is after how many telling answers older ones count for 1/e.
	capacityMemory = 48
	// capacityEvidence is how many telling answers it takes to change one's mind.
	capacityEvidence = 6
	// tellingShare is how much of a prompt must depend on the capacity for its
	// answer to tell something, and how much of the prompts a better capacity must
	// foretell better: less is rounding to blocks and estimating lengths.
	tellingShare = 0.02
	// capacityGain is the share by which errors must fall for a change.
	capacityGain = 0.1
)

// capacityAt is the i-th of all capacities that are considered, in tokens.
func capacityAt(i int) float64 {
	return leastCapacity * math.Exp2(float64(i)/triesPerDoubling)
}

// capacityNear is the number of the capacity next to so many tokens.
func capacityNear(tokens float64) int {
	i := math.Round(triesPerDoubling * math.Log2(max(tokens, leastCapacity)/leastCapacity))
	return min(int(i), capacities-1)
}

// promise is how many leading tokens of a prompt a replica holds if its
// capacity is one of several, smallest first.
type promise struct {
	first int // number of the first capacity
	held  [tries]uint32
}

// at is what is held if the capacity is the i-th. Beyond those that were tried
// the nearest one tells.
func (p *promise) at(i int) float64 {
	return float64(p.held[min(max(i-p.first, 0), tries-1)])
}

// capacityBelief learns a replica's capacity: which one would have foretold best
// what its answers found cached.
type capacityBelief struct {
	errors   [capacities]float64 // tokens, fading
	asked    float64             // tokens of the prompts, fading
	evidence float64
	proved   int // number of a capacity that the replica has at least
}

// proofMargin is how much smaller than what a hit needed a capacity is taken to
// be proved: the order of eviction is not known to the token.
const proofMargin = 1

// prove notes that a hit needed some capacity.
func (c *capacityBelief) prove(promised func(i int) float64, found float64) {
	found = min(found, promised(capacities-1))
	for i := c.proved + proofMargin; promised(i) < found-checkable; i++ {
		c.proved = i + 1 - proofMargin
	}
}

// learn compares promises with what was found of prompts of so many tokens.
func (c *capacityBelief) learn(promised func(i int) float64, tokens, found float64) {
	const keep = 1 - 1.0/capacityMemory
	for i := range c.errors {
		c.errors[i] = c.errors[i]*keep + math.Abs(promised(i)-found)
	}
	c.asked = c.asked*keep + tokens
	c.evidence = c.evidence*keep + 1
}

// better returns the nearest capacity to the present one that foretells about
// as well as the best, if that is clearly better than the present one.
func (c *capacityBelief) better(present int) (int, bool) {
	at := capacityNear(float64(present))
	least := c.errors[at]
	for _, e := range c.errors {
		least = min(least, e)
	}
	if c.evidence < capacityEvidence || c.errors[at]-least <= max(capacityGain*c.errors[at], tellingShare*c.asked) {
		return 0, false
	}
	enough := least + (c.errors[at]-least)*capacityGain
	for step := 1; step < capacities; step++ {
		for _, i := range []int{at - step, at + step} {
			if i >= 0 && i < capacities && c.errors[i] <= enough {
				return int(capacityAt(i)), true
			}
		}
	}
	return 0, false
}

// learnCapacity lets the capacity of a replica follow what was found cached of
// prompts of so many tokens, of which each capacity promised some. What private
// slots hold depends on their number only.
func (f *Fleet) learnCapacity(r *replica, promised func(i int) float64, tokens, found float64) {
	if r.sequences.known() || promised(capacities-1)-promised(0) <= tellingShare*tokens {
		return
	}
	r.belief.prove(promised, found)
	r.belief.learn(promised, tokens, found)
	if tokens, ok := r.belief.better(r.capacity); ok {
		r.learned = tokens
		r.trust.edge, r.trust.ghost = usualTrust.edge, usualTrust.ghost
		f.resize(r)
	}
}
