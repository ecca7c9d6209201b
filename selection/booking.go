package selection

import "time"

type stage uint8

const (
	waiting stage = iota // the prefill is not known to be done
	running              // past the prefill
	ended
)

// Booking is a request's place on a replica: the work charged to it and the
// prefix it is about to hold. It must be closed by End or Fail; what is
// reported after that is ignored, so a booking is released exactly once.
// Methods are safe for concurrent use.
type Booking struct {
	Estimate Estimate
	Reason   Reason
	// Considered are the estimates of the chosen replica and, by cost, of the
	// cheapest others. The longest holder of the prompt is always among them.
	// There are at most 8.
	Considered []Estimate

	fleet      *Fleet
	replica    *replica
	claim      *Claim
	model      string
	work       Work
	began      time.Time
	generation int // of the replica's promises

	// The fields below are guarded by the fleet's lock.
	prefill            time.Duration // charged
	prompt             int           // tokens charged
	unindexed          int           // of those, beyond the last block
	blocks             []Block       // of the prompt
	streamed           bool
	stage              stage
	answer             int           // tokens that it is expected to have
	behind             bool          // others were queued when it came
	took               time.Duration // of the prefill
	drained            bool          // took is since the one before it left the queue
	first              time.Time     // when the first token came
	sequences, context int           // of the others decoding then, and their prompts
	next, previous     *Booking
}

// Usage is what an answer said of itself, in tokens. Prompt and Output are 0
// when they are not known.
type Usage struct {
	Prompt  int // cached tokens included
	Output  int
	Cached  int     // prompt tokens found in the replica's cache
	Checked bool    // Cached is known
	Prefill float64 // seconds that the replica says the prefill took, 0 when not known
}

// FirstToken reports that the first token of the answer has arrived: the
// prefill is done and the prompt is in the replica's cache.
func (b *Booking) FirstToken(now time.Time) {
	b.fleet.mu.Lock()
	first := b.stage == waiting
	b.replica.ledger.prefilled(b, now)
	if first {
		b.fleet.begin(b, now)
	}
	b.fleet.mu.Unlock()
	if first {
		b.claim.Confirm()
	}
}

// End reports that the replica has answered in full.
func (b *Booking) End(now time.Time, usage Usage) {
	if !b.close(now, func() {
		b.replica.failures.succeed(modelCell(b.model), now)
		b.fleet.learn(b, now, usage)
		b.replica.sequences.end(b, usage.Output)
	}) {
		return
	}
	b.claim.Confirm()
	b.claim.Release(usage.Output)
}

// Cancel reports that the client has gone. What the replica computed until
// then stays; a prefill that was not known to be done is taken as not begun.
func (b *Booking) Cancel(now time.Time, usage Usage) {
	prefilled := false
	if !b.close(now, func() {
		if prefilled = b.stage == running && b.streamed; prefilled {
			b.replica.sequences.end(b, usage.Output)
		} else {
			b.replica.sequences.undo(b)
		}
	}) {
		return
	}
	if prefilled {
		b.claim.Release(usage.Output)
	} else {
		b.claim.Undo()
	}
}

// Failure says whom an attempt's failure speaks against.
type Failure uint8

const (
	// FailureRequest speaks against the request itself, as status 400 does.
	FailureRequest Failure = iota
	// FailureModel speaks against the replica serving this model: 401, 404, 429, 5xx.
	FailureModel
	// FailureReplica speaks against the replica as a whole: connection refused or lost.
	FailureReplica
)

// Fail reports that the attempt failed. Charge and residency are undone, and
// the replica is priced accordingly.
func (b *Booking) Fail(now time.Time, failure Failure) {
	if !b.close(now, func() {
		if failure != FailureRequest {
			b.replica.failures.fail(modelCell(b.model), failure == FailureReplica, b.began, now)
		}
		b.replica.sequences.undo(b)
	}) {
		return
	}
	b.claim.Undo()
	if failure == FailureReplica {
		// After the undoing, which stamps what had been confirmed.
		b.fleet.Distrust(b.replica.address)
	}
}

// close takes the booking off the ledger after calling last under the lock.
// It reports false when the booking was closed before.
func (b *Booking) close(now time.Time, last func()) bool {
	b.fleet.mu.Lock()
	defer b.fleet.mu.Unlock()
	if b.stage == ended {
		return false
	}
	last()
	if b.stage == running {
		b.replica.slots.freed = now
	}
	b.replica.ledger.remove(b, now)
	return true
}
