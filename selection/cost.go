package selection

import (
	"math"
	"time"
)

const (
	// ownWeight is what a second of a prefill counts by itself: its client waits for
	// it, and the replica is kept from all else. Fitted.
	ownWeight = 2
	// decodeWeight is what a second of this request's own decoding counts against
	// a second of waiting for its first token. It is small, since batches even out
	// while an answer lasts: what differs now differs for a part of it.
	decodeWeight = 0.15
	// stallWeight is what a second counts for which a sequence waits that begins to
	// decode alone. Among n it counts 1/sqrt(1+n) of that, since large batches
	// differ less in what they will be by then. Fitted.
	stallWeight = 1.5
	// queuedWeight is for how many requests each one counts that has no first
	// token yet. Fitted: 1 is what steps shared with this prefill would justify.
	queuedWeight = 2.25
	// displacedWeight is for how many requests the sequence counts that a prefill
	// displaces from private slots: one of a few, most of which are asked for again.
	// Fitted.
	displacedWeight = 7
	// utilisationLimit keeps a share whose price goes to infinity near 1 away from it.
	utilisationLimit = 0.9
	// laterLimit is for how many requests those count at most that arrive later.
	// Fitted.
	laterLimit = 32
)

// estimate prices a request on a replica that holds so much of its prompt. In
// seconds,
//
//	cost = wait + prefill*factor + 0.15*decode
//	factor = pressure * (2 + 2.25*queued + later/(1+later/32) + 3*(sqrt(1+running)-1))
//	later = lambda*(wait+prefill)/(1-rho)
//
// The wait is for the prefills in the queue or for a place in the batch, whichever
// is longer. The factor is what a second of prefill costs everybody, its client
// included. The queued requests share the engine's steps with this prefill, and those
// that arrive until the queue drains, at rate lambda while prefill takes the share
// rho of the time, wait for it too. The running ones decode in the same steps. An
// uncached token also evicts another one, which has to be computed again the sooner the
// higher the pressure on this cache is. Private slots add to the factor instead.
func (f *Fleet) estimate(r *replica, request *Request, held Match, mean survey, now time.Time) Estimate {
	e := Estimate{Replica: r.address, Held: held}
	e.Wait = r.wait(now)
	f.reveal(&e)
	sequences := r.ledger.running + int(r.foreign.running)
	if request.Work != Light {
		f.estimatePrompt(&e, r, request)
	}
	if request.Work == Generate {
		f.estimateAnswer(&e, r, request, sequences+r.ledger.queued+1)
	}
	e.Wait += r.foreign.waiting * mean.prefill
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

// estimateAnswer fills in how long the answer decodes among those of so many
// sequences, this one included, that run at once, and how long it waits to be one of
// them. Prefills go on meanwhile, so that it waits no longer for both.
func (f *Fleet) estimateAnswer(e *Estimate, r *replica, request *Request, sequences int) {
	share := f.share(r, request, e.Held)
	running := int(math.Round(share * float64(sequences)))
	context := share * float64(r.ledger.context+request.Tokens)
	e.Decode = float64(f.outputs.expect(request)) * r.speed.interToken(running, context) * f.decodePace(r)
	e.Admission = admission(share, e.Decode)
	e.Wait = max(e.Wait, e.Admission)
}

// factor is what a second of prefill costs everybody, itself included.
func (f *Fleet) factor(r *replica, e *Estimate, sequences int, mean survey) float64 {
	later := mean.arrivals * e.TTFT() / (1 - min(mean.utilisation, utilisationLimit))
	factor := ownWeight + queuedWeight*float64(r.ledger.queued) + delayed(later) + stalled(sequences)
	if r.sequences.known() {
		factor += displacedWeight
	}
	return factor * f.pressure(r, mean)
}

// pressure is how many times as much prefill costs for what it evicts. What private
// slots evict has a weight of its own.
func (f *Fleet) pressure(r *replica, mean survey) float64 {
	if !r.contends() {
		return 1
	}
	return f.contention.pressure(r.turnover, mean.turnover)
}

// delayed is for how many requests those count that arrive until the queue drains:
// the more they would be, the more of them can still be sent elsewhere. It nears
// laterLimit and never reaches it, so that of two long queues the shorter one stays
// the better.
func delayed(later float64) float64 { return later / (1 + later/laterLimit) }

// stalled is for how many requests the decoding ones count: the integral of
// stallWeight/sqrt(1+n) over their number.
func stalled(sequences int) float64 {
	return 2 * stallWeight * (math.Sqrt(1+float64(sequences)) - 1)
}
