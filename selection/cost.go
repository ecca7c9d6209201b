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
	// slotRegret is the regret of private slots: a miss displaces a whole sequence
	// of a few, so that most of it is asked for again. Fitted.
	slotRegret = 0.875
	// regretLimit and utilisationLimit keep the two shares whose price goes to
	// infinity near 1 away from it.
	regretLimit      = 0.875
	utilisationLimit = 0.9
	// laterLimit is for how many requests those count at most that arrive later.
	// Fitted.
	laterLimit = 32
)

// estimate prices a request on a replica that holds so much of its prompt. In
// seconds,
//
//	cost = wait + prefill*factor + 0.15*decode
//	factor = 2 + r/(1-r) + 2.25*queued + later/(1+later/32) + 3*(sqrt(1+running)-1)
//	later = lambda*(wait+prefill)/(1-rho)
//
// The wait is for the prefills in the queue or for a place in the batch, whichever
// is longer. The factor is what a second of prefill costs everybody, its client
// included. r is the share of evicted tokens that will be asked for again: an
// uncached token evicts another one, which then costs a recomputation, which evicts
// another. The queued requests share the engine's steps with this prefill, and those
// that arrive until the queue drains, at rate lambda while prefill takes the share
// rho of the time, wait for it too. The running ones decode in the same steps.
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
	again := f.regret(r, mean)
	return ownWeight + again/(1-again) + queuedWeight*float64(r.ledger.queued) + delayed(later) + stalled(sequences)
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

// regret is the share of the tokens that a prompt evicts there that will be asked
// for again: the fleet's, since what one replica forgets may be asked of any. It is
// less where a cache holds tokens for longer than the mean of the fleet, in
// proportion, since what has not been used for long is seldom asked for; a cache
// with room holds them for ever. It is not the share of what came back to this
// replica: one that is given what nobody held would be cheap, as that seldom comes
// back, and be given more.
func (f *Fleet) regret(r *replica, mean survey) float64 {
	if r.sequences.known() {
		return slotRegret
	}
	if r.turnover == 0 {
		return 0
	}
	return min(f.residency.FleetRegret(r.slot)*min(1, r.turnover/mean.turnover), regretLimit)
}
