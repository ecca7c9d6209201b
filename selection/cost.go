package selection

import (
	"math"
	"time"
)

const (
	// decodeWeight is what a second of decoding counts against a second of
	// waiting for the first token.
	decodeWeight = 0.3
	// queuedWeight is for how many requests each one counts that has no first
	// token yet. Fitted: 1 is what steps shared with this prefill would justify.
	queuedWeight = 3
	// regretLimit and utilisationLimit keep the two shares whose price goes to
	// infinity near 1 away from it.
	regretLimit      = 0.8
	utilisationLimit = 0.9
	// queueingLimit bounds how many later requests a prefill is charged for.
	queueingLimit = 16
	// prefillChunk is how many prompt tokens engines usually compute in one step.
	prefillChunk = 8192
)

// estimate prices a request on a replica that holds so much of its prompt. In
// seconds,
//
//	cost = wait + prefill*factor + 0.3*decode
//	factor = 1/(1-r) + 3*queued + lambda*(wait+prefill)/(1-rho) + 0.3*running
//
// The factor is what a second of prefill costs everybody. r is the share of
// evicted tokens that are asked for again: an uncached token evicts another one,
// which then costs a recomputation, which evicts another. The queued requests
// share the engine's steps with this prefill, and those that arrive until the
// queue drains, at rate lambda while prefill takes the share rho of the time,
// wait for it too. The running ones decode in the same steps.
func (f *Fleet) estimate(r *replica, request *Request, held Match, mean survey, now time.Time) Estimate {
	e := Estimate{Replica: r.address, Held: held}
	e.Wait = r.ledger.wait(now) + r.foreign.waiting*mean.prefill
	sequences := r.ledger.running + int(r.foreign.running)
	if request.Work != Light {
		f.estimatePrompt(&e, r, request)
		e.Wait += r.steps(float64(e.Uncached), sequences, r.ledger.context) * f.decodePace(r)
	}
	if request.Work == Generate {
		e.Decode = f.estimateDecode(r, request, sequences+r.ledger.queued+1)
		e.Admission = r.admission(request.Tokens, e.Decode)
		e.Wait += e.Admission
	}
	e.Factor = f.factor(r, &e, sequences, mean)
	e.Cost = e.Wait + e.Prefill*e.Factor + decodeWeight*e.Decode
	return e
}

// estimatePrompt fills in what is cached and what computing the rest takes.
// The last token is always computed, since it yields the first one of the answer.
func (f *Fleet) estimatePrompt(e *Estimate, r *replica, request *Request) {
	e.Matched = max(0, min(r.expect(e.Held), request.Tokens-1))
	e.Uncached = request.Tokens - e.Matched + request.Extra
	e.Prefill = r.speed.prefill(float64(e.Matched), float64(e.Uncached)) * f.prefillPace(r)
}

// steps is what the decoding of other sequences adds to the time of a prefill,
// in seconds at the usual speed: engines do both in the same steps.
func (r *replica) steps(uncached float64, sequences, context int) float64 {
	if sequences == 0 {
		return 0
	}
	return (0.5 + math.Ceil(uncached/prefillChunk)) * r.speed.interToken(sequences, float64(context))
}

// estimateDecode is the time to generate the answer among so many sequences,
// this one included, in seconds.
func (f *Fleet) estimateDecode(r *replica, request *Request, sequences int) float64 {
	context := float64(r.ledger.context + request.Tokens)
	return float64(f.outputs.expect(request)) * r.speed.interToken(sequences, context) * f.decodePace(r)
}

// factor is what a second of prefill costs everybody, itself included.
func (f *Fleet) factor(r *replica, e *Estimate, sequences int, mean survey) float64 {
	regret := min(f.residency.Regret(r.slot), regretLimit)
	later := mean.arrivals * e.TTFT() / (1 - min(mean.utilisation, utilisationLimit))
	return 1/(1-regret) + queuedWeight*float64(r.ledger.queued) + min(later, queueingLimit) + decodeWeight*float64(sequences)
}
