package engine

import (
	"math"
	"time"
)

// Never is the time of an event that does not come.
const Never = time.Duration(math.MaxInt64)

// Advance runs the engine up to now and returns what happened since the last
// call, in order of time. The slice is reused by the next call.
func (e *Engine) Advance(now time.Duration) []Event {
	e.run(now)
	e.events, e.reported = e.reported[:0], e.events
	return e.reported
}

// NextEvent is the earliest time at which something may happen to a request if
// nothing else is submitted, or Never. It may be early, but moves on then.
func (e *Engine) NextEvent() time.Duration {
	if !e.ensureStep() {
		return Never
	}
	if steps := e.pureSteps(); steps > 1 {
		return e.endAfter(steps)
	}
	return e.stepEnd
}

// NextStep is when the step in flight ends, or Never.
func (e *Engine) NextStep() time.Duration {
	if !e.ensureStep() {
		return Never
	}
	return e.stepEnd
}

// run completes all steps that end by now. A step that would start at now is
// left to be planned later, so that it takes in what is submitted at now.
func (e *Engine) run(now time.Duration) {
	for {
		if !e.planned && e.clock >= now || !e.ensureStep() || e.stepEnd > now {
			return
		}
		if steps := e.pureSteps(); steps > 1 {
			e.leap(min(steps-1, e.stepsBy(now)))
		} else {
			e.complete()
		}
	}
}

// ensureStep plans a step unless one is in flight, and reports whether one is now.
func (e *Engine) ensureStep() bool {
	if e.planned {
		return true
	}
	e.dropCancelled()
	if e.idle() {
		return false
	}
	e.plan()
	return true
}

// plan starts a step at clock: running sequences first, then waiting ones.
func (e *Engine) plan() {
	e.load = load{}
	budget := e.profile.TokenBudget
	preempted := false
	for i := 0; i < len(e.running); i++ {
		r := e.running[i]
		r.planned = min(r.pending(), budget)
		for !e.cache.grow(r, r.computed+r.planned) {
			preempted = true
			if e.preemptLast() == r {
				break
			}
		}
		if i < len(e.running) {
			budget -= r.planned
			e.load.add(r)
		}
	}
	if !preempted {
		e.admit(budget)
	}
	e.planned = true
	e.stepEnd = e.clock + e.profile.stepTime(e.load)
}

// admit takes waiting requests into the step while there is room.
func (e *Engine) admit(budget int) {
	for budget > 0 && e.admissible() {
		r := e.waiting.front()
		if !e.cache.admit(r) {
			e.blocked = true
			return
		}
		e.waiting.popFront()
		e.running = append(e.running, r)
		if r.Preemptions == 0 {
			r.Admitted, r.Cached = e.clock, r.computed
			e.stats.QueriedTokens += r.Prompt
			e.stats.CachedTokens += r.computed
		}
		r.planned = min(r.pending(), budget)
		e.cache.grow(r, r.computed+r.planned)
		budget -= r.planned
		e.load.add(r)
	}
}

// admissible reports whether the first waiting request might be admitted. Once
// it did not fit, only a release can change that.
func (e *Engine) admissible() bool {
	return e.waiting.len() > 0 && !e.blocked && len(e.running) < e.profile.MaxSequences
}

// add counts what a request computes in a step.
func (l *load) add(r *Request) {
	switch {
	case r.planned == 0:
	case r.pending() == 1:
		l.decoding++
		l.kv += r.computed + 1
	default:
		l.prefill += r.planned
		l.attention += float64(r.planned) * (float64(r.computed) + float64(r.planned)/2)
	}
}

// preemptLast puts the sequence admitted last back in front of the queue.
func (e *Engine) preemptLast() *Request {
	last := len(e.running) - 1
	r := e.running[last]
	e.running[last] = nil
	e.running = e.running[:last]
	e.release(r)
	r.computed, r.planned = 0, 0
	r.Preemptions++
	e.stats.Preemptions++
	e.waiting.pushFront(r)
	return r
}

func (e *Engine) release(r *Request) {
	e.cache.release(r)
	e.blocked = false
}

// complete ends the step in flight.
func (e *Engine) complete() {
	e.endStep(1, e.stepEnd)
	e.stats.ComputedTokens += e.load.prefill
	kept := e.running[:0]
	for _, r := range e.running {
		r.computed += r.planned
		if r.pending() == 0 && !r.cancelled {
			e.generate(r)
		}
		if r.Finished != 0 {
			e.release(r)
		} else {
			kept = append(kept, r)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
}

func (e *Engine) endStep(steps int, at time.Duration) {
	e.stats.BusyTime += at - e.clock
	e.stats.Steps += steps
	e.clock = at
	e.planned = false
}

// generate gives a request its next token at clock.
func (e *Engine) generate(r *Request) {
	r.Generated++
	e.stats.GeneratedTokens++
	if r.Generated == 1 {
		r.FirstToken = e.clock
		e.stats.FirstTokens++
		e.stats.PromptTokens += r.Prompt
		e.stats.UncachedTokens += r.Prompt - r.Cached
		e.stats.QueueTime += r.Admitted - r.Submitted
		e.stats.PrefillTime += r.FirstToken - r.Admitted
		e.events = append(e.events, Event{e.clock, FirstToken, r})
	}
	if r.Generated == r.Output {
		r.Finished = e.clock
		e.stats.Requests++
		e.events = append(e.events, Event{e.clock, Finished, r})
	}
}

func (e *Engine) dropCancelled() {
	if !e.aborted {
		return
	}
	e.aborted = false
	kept := e.running[:0]
	for _, r := range e.running {
		if r.cancelled {
			e.release(r)
		} else {
			kept = append(kept, r)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
}
