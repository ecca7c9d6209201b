package health

import (
	"math"
	"time"
)

// Report is what a replica says about itself at one time. A quantity that the
// replica does not tell is NaN, see [Known]; counters count since the engine
// started. Several data-parallel ranks behind one address are one replica:
// requests, tokens and capacity are summed over them, KVUsage is their mean.
type Report struct {
	// At is when the page was asked for, so the truth is at least that recent.
	At time.Time
	// Engine is the dialect that the page is written in.
	Engine string
	// Restarted says that the engine started anew since the report before, so
	// that its KV cache is cold.
	Restarted bool
	// Sleeping says that the engine holds no KV cache at present: it was put to
	// sleep or its model is unloaded. Some engines wake up on the next request.
	Sleeping bool
	// PrefixCaching says whether prefixes are reused at all.
	PrefixCaching Setting
	// SlotsAssumed says that Slots is the engine's default, not its own word.
	SlotsAssumed bool
	// PrivateSlots says that each slot keeps the sequence it served last for
	// itself: nothing that is cached is shared between slots.
	PrivateSlots bool

	// Running and Waiting are numbers of requests.
	Running, Waiting float64
	// KVUsage is the share of the KV cache, 0 to 1, that live requests hold.
	// What is cached but held by no request counts as free.
	KVUsage float64
	// CapacityTokens is the size of the KV cache.
	CapacityTokens float64
	// BlockTokens is how many tokens the engine caches as one unit.
	BlockTokens float64
	// Slots is how many requests are admitted to run at the same time.
	Slots float64
	// ContextTokens is the longest sequence one request may have.
	ContextTokens float64
	// StartTime is when the engine's process started, in Unix seconds.
	StartTime float64

	// PrefixQueries and PrefixHits count tokens looked up and found in the
	// prefix cache.
	PrefixQueries, PrefixHits float64
	// PromptTokens counts tokens of all prompts, reused ones included.
	PromptTokens float64
	// PrefillSeconds counts time that requests spent in prefill. Requests that
	// are prefilled together count the same time each.
	PrefillSeconds float64
	// ComputedTokens counts prompt tokens that were not reused, so that
	// PrefillSeconds / ComputedTokens is the price of one. Some engines make
	// us derive it from other counters; then it may step back a little.
	ComputedTokens float64
}

// Setting is a choice that an engine may not tell.
type Setting int8

// The values of a Setting.
const (
	Off     Setting = -1
	Unknown Setting = 0
	On      Setting = 1
)

// String returns the setting as a word.
func (s Setting) String() string {
	switch s {
	case Off:
		return "off"
	case On:
		return "on"
	default:
		return "unknown"
	}
}

// Known reports whether a quantity of a [Report] was told.
func Known(quantity float64) bool { return !math.IsNaN(quantity) }

// quantityNames name what quantities returns, in the same order.
var quantityNames = [...]string{
	"prefix_queries", "prefix_hits", "prompt_tokens", "prefill_seconds",
	"computed_tokens", "running", "waiting", "kv_usage", "capacity_tokens",
	"block_tokens", "slots", "context_tokens", "start_time",
}

// monotone is how many of the quantities, from the first, never go down while
// an engine lives.
const monotone = 4

func (r *Report) quantities() [len(quantityNames)]*float64 {
	return [...]*float64{
		&r.PrefixQueries, &r.PrefixHits, &r.PromptTokens, &r.PrefillSeconds,
		&r.ComputedTokens, &r.Running, &r.Waiting, &r.KVUsage, &r.CapacityTokens,
		&r.BlockTokens, &r.Slots, &r.ContextTokens, &r.StartTime,
	}
}

// unknown returns the report that tells nothing.
func unknown() Report {
	var r Report
	for _, q := range r.quantities() {
		*q = math.NaN()
	}
	return r
}

// tells reports whether anything about the engine was found. A start time
// alone is not enough: every Prometheus client library writes one.
func (r *Report) tells() bool {
	for _, q := range r.quantities() {
		if q != &r.StartTime && Known(*q) {
			return true
		}
	}
	return false
}

// refuse forgets numbers that cannot be true.
func (r *Report) refuse() {
	for _, q := range r.quantities() {
		if *q < 0 || math.IsInf(*q, 0) {
			*q = math.NaN()
		}
	}
	r.KVUsage = share(r.KVUsage, 1)
}

// fill takes over from facts what r itself does not tell.
func (r *Report) fill(facts *Report) {
	from := facts.quantities()
	for i, q := range r.quantities() {
		if !Known(*q) {
			*q = *from[i]
		}
	}
	if r.PrefixCaching == Unknown {
		r.PrefixCaching = facts.PrefixCaching
	}
	r.Sleeping = r.Sleeping || facts.Sleeping
	r.SlotsAssumed = r.SlotsAssumed || facts.SlotsAssumed
	r.PrivateSlots = r.PrivateSlots || facts.PrivateSlots
}

// RestartedSince reports whether the engine started anew between the earlier
// report before and r: another engine answers, the start time moved forward,
// or a counter went down or vanished. A start time that moves backwards proves
// nothing, since several processes may answer at one address in turn.
func (r Report) RestartedSince(before Report) bool {
	if r.Engine != before.Engine || r.StartTime > before.StartTime+1 {
		return true
	}
	then, now := before.quantities(), r.quantities()
	for i := range monotone {
		if *then[i] > 0 && !(*now[i] >= *then[i]) {
			return true
		}
	}
	return false
}
