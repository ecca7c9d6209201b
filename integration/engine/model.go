package engine

import (
	"fmt"
	"time"
)

// Times are durations since an origin that the caller chooses.

// Request is one sequence: what the caller asks for, and what became of it. The
// engine owns it from Submit until it reports Finished, Cancel or Reset; the
// results may be read between calls. A request can be submitted once.
type Request struct {
	// Keys are the chained keys of all full blocks over the prompt's tokens and
	// the output's. Blocks beyond them, and those with key 0, are never shared.
	Keys []uint64
	// Prompt and Output are numbers of tokens, at least 1 each.
	Prompt, Output int
	// Tag is the caller's own.
	Tag uint64

	// Cached is how many prompt tokens were in the cache at first admission.
	Cached int
	// Generated is how many tokens there are so far.
	Generated int
	// Preemptions is how often the request was put back to be computed again.
	Preemptions int
	// Submitted, Admitted (first), FirstToken and Finished are zero until reached.
	Submitted, Admitted, FirstToken, Finished time.Duration

	computed  int // tokens whose KV exists
	planned   int // tokens computed by the step in flight
	cancelled bool
	blocks    []int32 // held, paged cache
	keyed     int     // how many of them have got their keys
	admission uint32  // counts up
	slot      int     // held, slot cache
}

// tokens is the length of the sequence so far.
func (r *Request) tokens() int { return r.Prompt + r.Generated }

// pending is how many tokens must be computed before the next token is known.
func (r *Request) pending() int { return r.tokens() - r.computed }

// EventKind says what happened to a request.
type EventKind uint8

// The kinds of events.
const (
	FirstToken EventKind = iota + 1
	Finished
)

// Event is something that happened to a request at a time.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Request *Request
}

// Stats are an engine's counters since it started, and its present load.
type Stats struct {
	Requests        int // finished
	PromptTokens    int // of requests that have their first token
	GeneratedTokens int
	QueriedTokens   int // looked up in the cache, at first admission
	CachedTokens    int // of those, found
	ComputedTokens  int // computed in prefill, recomputation included
	Preemptions     int

	// PrefillTime and QueueTime are sums over the requests that have their
	// first token: from admission to it, and from submission to admission.
	PrefillTime, QueueTime time.Duration
	// FirstTokens is the number of those requests, and UncachedTokens how many
	// of their prompt tokens were not cached.
	FirstTokens, UncachedTokens int
	// BusyTime is the sum of all steps.
	BusyTime time.Duration
	Steps    int

	Running, Waiting int
	UsedTokens       int // KV capacity held by running requests
}

// Engine is one replica. It is not safe for concurrent use. Times given to it
// must not go backwards.
type Engine struct {
	base    Profile // as given
	profile Profile // slowed
	cache   cache

	running []*Request // in order of admission
	waiting queue
	blocked bool // the first waiting request did not fit, and nothing was released since

	clock   time.Duration // when the last step ended, or the engine woke up
	planned bool          // a step is in flight
	stepEnd time.Duration
	load    load // of the step in flight
	aborted bool // some running request is cancelled

	started time.Duration // the last reset
	wake    time.Duration // no step begins before

	events, reported []Event
	stats            Stats
}

// New makes an idle engine with a cold cache.
func New(p Profile) *Engine {
	e := &Engine{base: p, profile: p}
	e.coldCache()
	return e
}

func (e *Engine) coldCache() {
	if e.base.Slots {
		e.cache = newSlots(e.base)
	} else {
		e.cache = newPaged(e.base)
	}
}

// Profile is the profile the engine was made with.
func (e *Engine) Profile() Profile { return e.base }

// Submit hands a request to the engine. It is an error if its tokens can never
// fit.
func (e *Engine) Submit(now time.Duration, r *Request) error {
	if r.Prompt < 1 || r.Output < 1 {
		return fmt.Errorf("submitting request: %d prompt and %d output tokens, want at least 1 each", r.Prompt, r.Output)
	}
	if n, most := r.Prompt+r.Output, e.base.MaxTokens(); n > most {
		return fmt.Errorf("submitting request: %d tokens, want at most %d", n, most)
	}
	e.run(now)
	if e.idle() {
		e.clock = max(now, e.wake)
	}
	r.Submitted = now
	e.waiting.pushBack(r)
	return nil
}

// Cancel drops a request. It may still take part in the step in flight; no
// event is reported for it any more.
func (e *Engine) Cancel(now time.Duration, r *Request) {
	e.run(now)
	if r.Finished != 0 || r.cancelled {
		return
	}
	r.cancelled = true
	if e.waiting.remove(r) {
		e.blocked = false
		return
	}
	e.aborted = true
}

// Reset is a crash: it drops all requests and returns them, and leaves the
// engine with a cold cache and counters at zero.
func (e *Engine) Reset(now time.Duration) []*Request {
	e.run(now)
	dropped := append([]*Request(nil), e.running...)
	dropped = append(dropped, e.waiting.items()...)
	*e = Engine{base: e.base, profile: e.profile, clock: now, started: now, events: e.events}
	e.coldCache()
	for _, r := range dropped {
		r.blocks = nil
	}
	return dropped
}

// Slow multiplies the time of all steps to come by factor; 1 is full speed.
func (e *Engine) Slow(now time.Duration, factor float64) {
	e.run(now)
	e.profile = e.base.Slowed(factor)
}

// Started is when the engine was last reset.
func (e *Engine) Started() time.Duration { return e.started }

// Sleep makes the engine give up its KV cache and compute nothing before until.
// What was running is computed again then.
func (e *Engine) Sleep(now, until time.Duration) {
	e.run(now)
	e.dropCancelled()
	for len(e.running) > 0 {
		e.preemptLast()
	}
	e.cache.clear()
	e.planned = false
	e.wake = until
	e.clock = max(now, until)
}

// Sleeping reports whether the engine was put to sleep and has not woken up.
func (e *Engine) Sleeping(now time.Duration) bool { return now < e.wake }

// ClearCache makes all content unfindable; running requests go on.
func (e *Engine) ClearCache(now time.Duration) {
	e.run(now)
	e.cache.clear()
}

// Stats reports counters and load as of the last call that told the time.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Running, s.Waiting = len(e.running), e.waiting.len()
	s.UsedTokens = e.cache.used()
	return s
}

func (e *Engine) idle() bool { return len(e.running) == 0 && e.waiting.len() == 0 }
