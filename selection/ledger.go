package selection

import "time"

// ledger is the work that a replica has been given and has not done, as far
// as our own bookings tell. Sums are integers, so that they return to exactly
// zero when the last booking ends.
type ledger struct {
	first, last *Booking      // bookings whose prefill is not known to be done, oldest first
	prefill     time.Duration // sum of their prefill estimates
	since       time.Time     // when the work on first began, as far as known
	seen        bool          // somebody joined or left the queue then, by no estimate
	queued      int           // how many they are
	running     int           // bookings past their prefill
	context     int           // prompt tokens of all bookings
	decoding    int           // of those past their prefill
	answers     int           // tokens that those are expected to generate
	unindexed   int           // of all, those of which the index knows nothing
	ends        ends
}

func (l *ledger) inFlight() int { return l.queued + l.running }

// inFlightSince is how many bookings were in flight at some time from then to now.
func (l *ledger) inFlightSince(then time.Time) int { return l.inFlight() + l.ends.since(then) }

// ends are when the last bookings ended: enough of them for the time that a
// replica takes to tell its load.
type ends struct {
	at   [32]time.Time
	next int
}

func (e *ends) note(now time.Time) {
	e.at[e.next] = now
	e.next = (e.next + 1) % len(e.at)
}

// since is how many ended after then.
func (e *ends) since(then time.Time) (n int) {
	for _, at := range &e.at {
		if at.After(then) {
			n++
		}
	}
	return n
}

// add books a prefill at the end of the queue.
func (l *ledger) add(b *Booking, now time.Time) {
	l.settle(now)
	if l.first == nil {
		l.first, l.since, l.seen = b, now, true
	} else {
		b.behind = true
		l.last.next, b.previous = b, l.last
	}
	l.last = b
	l.prefill += b.prefill
	l.queued++
	l.context += b.prompt
	l.unindexed += b.unindexed
	b.stage = waiting
}

// prefilled records that the prefill of b is done.
func (l *ledger) prefilled(b *Booking, now time.Time) {
	if b.stage != waiting {
		return
	}
	l.leaveQueue(b, now)
	b.sequences, b.context = l.running, l.decoding
	l.running++
	l.decoding += b.prompt
	l.answers += b.answer
	b.stage = running
}

// remove takes b out, whatever stage it has reached.
func (l *ledger) remove(b *Booking, now time.Time) {
	switch b.stage {
	case waiting:
		l.leaveQueue(b, now)
	case running:
		l.running--
		l.decoding -= b.prompt
		l.answers -= b.answer
	default:
		return
	}
	l.context -= b.prompt
	l.unindexed -= b.unindexed
	l.ends.note(now)
	b.stage = ended
}

// leaveQueue unlinks b. Time spent on the oldest prefill is spent when it
// leaves, however long it was estimated; when a later one overtakes it, only
// its own estimate is.
func (l *ledger) leaveQueue(b *Booking, now time.Time) {
	if b == l.first {
		b.took = max(0, now.Sub(l.since))
		b.drained = b.behind && l.seen
		l.since, l.seen = now, true
	} else {
		l.since, l.seen = earlier(now, l.since.Add(b.prefill)), false
	}
	if b.previous != nil {
		b.previous.next = b.next
	} else {
		l.first = b.next
	}
	if b.next != nil {
		b.next.previous = b.previous
	} else {
		l.last = b.previous
	}
	b.next, b.previous = nil, nil
	l.prefill -= b.prefill
	l.queued--
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// settle moves on bookings that will report no first token, because their
// answer is not streamed: their prefill counts as done when its time is over.
func (l *ledger) settle(now time.Time) {
	for b := l.first; b != nil && !b.streamed; b = l.first {
		done := l.since.Add(b.prefill)
		if done.After(now) {
			return
		}
		l.prefilled(b, done)
		l.seen = false
	}
}

// wait is how long a new prefill would wait for those booked before it, in
// seconds: until the first of them is done, and for the others. The first one works
// itself off with time. When it is overdue, it is expected to stay away for as long
// again as it is late already: a stuck replica must not look idle.
func (l *ledger) wait(now time.Time) (first, others float64) {
	l.settle(now)
	if l.first == nil {
		return 0, 0
	}
	left := l.since.Add(l.first.prefill).Sub(now)
	if left < 0 {
		left = -left
	}
	return left.Seconds(), (l.prefill - l.first.prefill).Seconds()
}
