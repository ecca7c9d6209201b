package selection

import (
	"math"
	"time"
)

const (
	// decodeWeight is what a second of decoding counts against a second of
	// waiting for the first token.
	decodeWeight = 0.3
	// regretLimit and utilisationLimit keep the two shares whose price goes to
	// infinity near 1 away from it.
	regretLimit      = 0.8
	utilisationLimit = 0.9
	// queueingLimit bounds how many later requests a prefill is charged for.
	queueingLimit = 16
)

// estimate prices a request on a replica that holds so much of its prompt. In
// seconds,
//
//	cost = wait + prefill*(1/(1-r) + lambda*(wait+prefill)/(1-rho)) + 0.3*decode + failing
//
// where r is the share of evicted tokens that are asked for again (an uncached
// token evicts another one, which then costs a recomputation, which evicts
// another), and the second term counts the requests that arrive, at rate
// lambda, until a queue drains that prefill work keeps busy for a share rho of
// the time: each of them waits for this prefill too.
func (f *Fleet) estimate(r *replica, request *Request, held Match, now time.Time) Estimate {
	e := Estimate{Replica: r.address, Held: held, Failing: r.failures.price(modelCell(request.Model), now)}
	e.Wait = r.ledger.wait(now)
	busy := min(r.utilisation(now), utilisationLimit)
	if request.Work != Light {
		f.estimatePrompt(&e, r, request)
	}
	if request.Work == Generate {
		e.Decode = f.estimateDecode(r, request, busy)
		e.Admission = r.admission(request.Tokens, e.Decode)
		e.Wait += e.Admission
	}
	e.Factor = f.factor(r, e.TTFT(), busy, now)
	e.Cost = e.Wait + e.Prefill*e.Factor + decodeWeight*e.Decode + e.Failing
	return e
}

// estimatePrompt fills in what is cached and what computing the rest takes.
// The last token is always computed, since it yields the first one of the answer.
func (f *Fleet) estimatePrompt(e *Estimate, r *replica, request *Request) {
	e.Matched = max(0, min(r.expect(e.Held), request.Tokens-1))
	e.Uncached = request.Tokens - e.Matched + request.Extra
	e.Prefill = r.speed.prefill(float64(e.Matched), float64(e.Uncached)) * f.prefillPace(r)
}

// prefillChunk is how many prompt tokens engines usually compute in one step.
const prefillChunk = 8192

// steps is what the decoding of other sequences adds to the time of a prefill,
// in seconds at the usual speed: engines do both in the same steps.
func (r *replica) steps(uncached float64, sequences, context int) float64 {
	if sequences == 0 {
		return 0
	}
	return (0.5 + math.Ceil(uncached/prefillChunk)) * r.speed.interToken(sequences, float64(context))
}

// estimateDecode is the time to generate the answer, in seconds, slowed down
// by the sequences that run there and by the prefills that interrupt them.
func (f *Fleet) estimateDecode(r *replica, request *Request, busy float64) float64 {
	sequences := r.ledger.inFlight() + 1
	context := float64(r.ledger.context + request.Tokens)
	return float64(f.outputs.expect(request)) * r.speed.interToken(sequences, context) * f.decodePace(r) / (1 - busy)
}

// factor is what a second of prefill costs everybody, itself included.
func (f *Fleet) factor(r *replica, ttft, busy float64, now time.Time) float64 {
	regret := min(f.residency.Regret(r.slot), regretLimit)
	queueing := r.arrivalRate(now) * ttft / (1 - busy)
	return 1/(1-regret) + min(queueing, queueingLimit)
}
