package selection

import (
	"math"
	"time"
)

// prefillChunk is how many prompt tokens engines usually compute in one step.
const prefillChunk = 8192

// learn takes in what a booking that ended in an answer shows. The caller
// holds the fleet's lock.
func (f *Fleet) learn(b *Booking, now time.Time, usage Usage) {
	if b.work == Light {
		return
	}
	b.replica.tally.count(b, usage)
	if b.first.IsZero() && b.generation == b.replica.generation {
		b.replica.counters.count(b)
	}
	if len(b.blocks) > 0 && b.replica.contends() {
		f.contention.learn(b.replica.capacity, b.prompt, b.claim.promise, usage.Output)
	}
	cached := float64(b.Estimate.Matched)
	if usage.Checked {
		cached = usage.found(b.prompt)
		f.learnResidency(b, cached)
	}
	switch {
	case b.replica.pinned:
	case b.first.IsZero() && usage.Prefill == 0:
		f.learnWhole(b, now, usage, cached)
	default:
		f.learnPrefill(b, usage, cached)
		f.learnDecode(b, now, usage)
	}
	if b.work == Generate {
		f.outputs.learn(b.model, usage.Output)
	}
}

// begin takes in that the first token of a booking has come. The caller holds
// the fleet's lock.
func (f *Fleet) begin(b *Booking, now time.Time) {
	b.first = now
	r := b.replica
	if b.drained {
		r.paces.queue.observe(b.took.Seconds(), b.prefill.Seconds(), 1)
	}
	r.slots.begin(now, b.prefill, b.took, b.sequences)
	if b.work != Light && b.generation == r.generation {
		r.counters.count(b)
	}
}

// found is how many tokens were found in the cache, in the measure of a prompt
// that was estimated to have so many.
func (u Usage) found(prompt int) float64 {
	if u.Prompt <= 0 {
		return float64(min(u.Cached, prompt))
	}
	return float64(prompt) * min(1, float64(u.Cached)/float64(u.Prompt))
}

// learnPrefill compares the time from when the prefill could begin to the
// first token with what it takes at the usual speed.
func (f *Fleet) learnPrefill(b *Booking, usage Usage, cached float64) {
	r := b.replica
	expected := r.speed.prefill(cached, float64(b.prompt)-cached)
	switch {
	case usage.Prefill > 0:
		f.observe(&r.paces.prefill, &f.paces.prefill, usage.Prefill, expected)
	case b.streamed && !b.first.IsZero() && b.Estimate.Admission == 0:
		steps := r.steps(float64(b.prompt)-cached, b.sequences, b.context)
		f.observe(&r.paces.prefill, &f.paces.prefill, b.took.Seconds(), expected+steps)
	}
}

// steps is what the decoding of other sequences adds to the time of a prefill,
// in seconds at the usual speed: engines do both in the same steps, half of one
// before it on average and one for every chunk. It is no part of the price,
// which it does not improve.
func (r *replica) steps(uncached float64, sequences, context int) float64 {
	if sequences == 0 {
		return 0
	}
	return (0.5 + math.Ceil(uncached/prefillChunk)) * r.speed.interToken(sequences, float64(context))
}

// learnDecode compares the time from the first token to the last with what it
// takes at the usual speed among as many other sequences.
func (f *Fleet) learnDecode(b *Booking, now time.Time, usage Usage) {
	r := b.replica
	if b.work != Generate || usage.Output < 2 || b.first.IsZero() {
		return
	}
	sequences := (b.sequences+1+r.ledger.running)/2 + int(r.foreign.running)
	context := float64(b.context+b.prompt+r.ledger.decoding) / 2
	expected := float64(usage.Output-1) * r.speed.interToken(sequences, context)
	f.observe(&r.paces.decode, &f.paces.decode, now.Sub(b.first).Seconds(), expected)
}

// learnWhole learns from an answer whose first token was not seen: what it took
// in all is shared between prefill and decoding as it was expected to be.
func (f *Fleet) learnWhole(b *Booking, now time.Time, usage Usage, cached float64) {
	r := b.replica
	prefill := r.speed.prefill(cached, float64(b.prompt)-cached)
	decode := 0.0
	if b.work == Generate {
		if usage.Output == 0 {
			return
		}
		decode = float64(usage.Output) * r.speed.interToken(max(1, r.ledger.running), float64(max(b.prompt, r.ledger.decoding)))
	}
	expected := b.Estimate.Wait + prefill*f.prefillPace(r) + decode*f.decodePace(r)
	share := now.Sub(b.began).Seconds() / expected
	f.observe(&r.paces.prefill, &f.paces.prefill, share*prefill*f.prefillPace(r), prefill)
	f.observe(&r.paces.decode, &f.paces.decode, share*decode*f.decodePace(r), decode)
}

// observe lets a replica and the fleet learn from one observation.
func (f *Fleet) observe(own, fleet *pace, taken, expected float64) {
	own.observe(taken, expected, fleet.factor(1, expected))
	fleet.observe(taken, expected, 1)
}

// prefillPace and decodePace are how many times the usual time a replica takes.
func (f *Fleet) prefillPace(r *replica) float64 {
	if r.pinned {
		return 1
	}
	return r.paces.prefill.among(&f.paces.prefill, leastPrefill)
}

func (f *Fleet) decodePace(r *replica) float64 {
	if r.pinned {
		return 1
	}
	return r.paces.decode.among(&f.paces.decode, leastDecode)
}
