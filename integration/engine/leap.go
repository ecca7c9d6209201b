package engine

import "time"

// Between events an engine mostly decodes: every running sequence gets one token
// a step and nothing else changes. Such stretches are taken in one leap.

// pureSteps is how many steps, the one in flight included, will only decode:
// each up to the last gives every running sequence one token, and the last may
// finish some. It is 0 or 1 if the next step may be of another kind.
func (e *Engine) pureSteps() int {
	if e.aborted || e.admissible() {
		return 0
	}
	least := 0
	for _, r := range e.running {
		if r.pending() != 1 || r.Generated == 0 || r.planned != 1 {
			return 0
		}
		if left := r.Output - r.Generated; least == 0 || left < least {
			least = left
		}
	}
	return e.cache.steps(e.running, least)
}

// endAfter is when the given number of pure steps, the one in flight included,
// will have ended.
func (e *Engine) endAfter(steps int) time.Duration {
	n := e.load.decoding
	return e.stepEnd + e.profile.decodeTime(steps-1, n, e.load.kv+n)
}

// stepsBy is how many pure steps, the one in flight included, end by now.
func (e *Engine) stepsBy(now time.Duration) int {
	n := e.load.decoding
	return 1 + e.profile.decodeSteps(now-e.stepEnd, n, e.load.kv+n)
}

// leap completes that many pure steps, none of which finishes a request.
func (e *Engine) leap(steps int) {
	e.endStep(steps, e.endAfter(steps))
	e.stats.GeneratedTokens += steps * len(e.running)
	for _, r := range e.running {
		e.cache.grow(r, r.computed+steps)
		r.computed += steps
		r.Generated += steps
	}
}
