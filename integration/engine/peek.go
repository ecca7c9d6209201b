package engine

import "time"

// Lookup is how many tokens of a request's prompt would be found in the cache
// if it were admitted now.
func (e *Engine) Lookup(r *Request) int { return e.cache.lookup(r) }

// Backlog is about how long a new request would wait until its own prefill
// begins, if it were admitted then: the rest of the step in flight and the
// prefills ahead.
func (e *Engine) Backlog(now time.Duration) time.Duration {
	ahead := load{}
	count := func(r *Request, cached int) {
		if n := r.tokens() - cached - r.planned; n > 1 {
			ahead.prefill += n
			ahead.attention += float64(n) * (float64(cached+r.planned) + float64(n)/2)
		}
	}
	for _, r := range e.running {
		count(r, r.computed)
	}
	for _, r := range e.waiting.items() {
		count(r, e.cache.lookup(r))
	}
	wait := max(0, e.wake-now)
	if e.planned {
		wait = max(wait, e.stepEnd-now)
	}
	if ahead.prefill > 0 {
		wait += e.profile.stepTime(ahead)
	}
	return wait
}

// Admits reports whether a new request would be admitted with the next step.
func (e *Engine) Admits(r *Request) bool {
	if e.waiting.len() > 0 || len(e.running) >= e.profile.MaxSequences {
		return false
	}
	return e.profile.Slots || e.cache.used()+r.tokens() <= e.profile.Capacity()
}

// PrefillTime is how long a replica of this profile computes that many tokens
// of a prompt behind cached ones, if it does nothing else.
func (p Profile) PrefillTime(cached, tokens int) time.Duration {
	return p.stepTime(load{
		prefill: tokens, attention: float64(tokens) * (float64(cached) + float64(tokens)/2),
	})
}
