package selection

import "math"

const (
	// contentionMemory is after how many answers older ones count for 1/e.
	contentionMemory = 512
	// contentionWeight is how much of the logarithm of its turnover counts where
	// all room is contended for. Fitted.
	contentionWeight = 0.5
	// turnoverLimit is how many times the mean a replica's turnover counts at most,
	// and one over it at least. Fitted.
	turnoverLimit = 2.0
)

// contention is how much requests compete for room in the fleet's caches. Averages
// are per answer, in tokens.
type contention struct {
	// sloped is the slope of the hit curve near the capacity, in tokens per natural
	// logarithm of it: what would be lost with smaller caches, or found with larger ones.
	sloped float64
	added  float64 // tokens that were not cached, and those of the answers
}

// learn takes in an answer of so many tokens to a prompt, of which that much was
// promised by capacity. The slope is that over a quarter of a doubling below the
// capacity or over a doubling above it, to the next step of those that are tried,
// whichever is steeper: the one shows what just fits, the other what no longer does.
func (c *contention) learn(capacity, prompt int, promise promise, output int) {
	at := capacityNear(float64(capacity))
	held := promise.at(at)
	below := (held - promise.at(at-1)) * triesPerDoubling
	above := (promise.at(at+triesAbove) - held) * triesPerDoubling / triesAbove
	c.sloped += (max(below, above)/math.Ln2 - c.sloped) / contentionMemory
	added := max(0, float64(prompt)-held) + float64(min(max(output, 0), capacity))
	c.added += (added - c.added) / contentionMemory
}

// share is sloped/(sloped+added), in [0,1]. A token more in the caches, which nobody
// asks for, costs sloped/added others. Caches with room to spare, or full of what is
// never asked for again, have no contention.
func (c *contention) share() float64 {
	if c.sloped <= 0 {
		return 0
	}
	return c.sloped / (c.sloped + c.added)
}

// pressure is how many times as much prefill costs on a replica whose cache is
// filled anew so often as on one like the mean: what it adds there evicts what was
// used a shorter time ago, and is the sooner asked for again. It is 1 where nobody
// contends for room. The exponent is of the fleet, since what a replica is given
// decides what comes back to it: one that is given what nobody held would seem to
// be without contention, and be given more.
func (c *contention) pressure(turnover, mean float64) float64 {
	if mean == 0 {
		return 1
	}
	ratio := min(max(turnover/mean, 1/turnoverLimit), turnoverLimit)
	return math.Pow(ratio, contentionWeight*c.share())
}
