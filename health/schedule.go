package health

import (
	"math/rand/v2"
	"time"
)

// maxBackoff is how many intervals pass at most between two polls of a replica
// that does not answer.
const maxBackoff = 30

// arm sets a replica's next poll. The poller's lock is held.
func (p *Poller) arm(r *replica, delay time.Duration) {
	if p.config.Interval <= 0 || len(p.dialects) == 0 {
		return
	}
	if r.timer == nil {
		r.timer = time.AfterFunc(delay, func() { p.tick(r) })
	} else {
		r.timer.Reset(delay)
	}
}

func (r *replica) disarm() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// tick polls a replica whose time has come, in the timer's goroutine.
func (p *Poller) tick(r *replica) {
	suspect, ok := p.begin(r)
	if !ok {
		return
	}
	defer p.polls.Done()
	p.poll(r)
	p.end(r, suspect)
}

// begin takes a place among the polls in flight, unless another poller has just
// asked the same replica. Without a free place the poll is put off a little, so
// that no goroutine waits. Replicas that do not answer hold their places until
// the timeout; they cannot take all.
func (p *Poller) begin(r *replica) (suspect, ok bool) {
	failing := r.failing()
	age, heard := r.heardByOther(p.number)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != running || p.replicas[r.name] != r || r.polling {
		return false, false
	}
	if heard && age < p.config.Interval/2 && !failing {
		p.arm(r, p.vary(p.config.Interval-age))
		return false, false
	}
	full := p.inFlight >= p.config.MaxInFlight
	if full || failing && p.suspects >= (p.config.MaxInFlight+1)/2 {
		p.arm(r, p.soon())
		return false, false
	}
	p.polls.Add(1)
	r.polling = true
	p.inFlight++
	if failing {
		p.suspects++
	}
	return failing, true
}

func (p *Poller) end(r *replica, suspect bool) {
	delay := p.nextDelay(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.hurry {
		delay = p.soon()
	}
	r.polling, r.hurry = false, false
	p.inFlight--
	if suspect {
		p.suspects--
	}
	if p.state == running && p.replicas[r.name] == r {
		p.arm(r, delay)
	}
}

// nextDelay is the interval, doubled with each failure in a row.
func (p *Poller) nextDelay(r *replica) time.Duration {
	intervals := min(1<<min(max(r.failuresInARow()-1, 0), 10), maxBackoff)
	return p.vary(p.config.Interval * time.Duration(intervals))
}

// vary changes a delay by up to a tenth.
func (p *Poller) vary(delay time.Duration) time.Duration {
	return time.Duration(float64(delay) * (0.9 + 0.2*rand.Float64()))
}

// firstDelay spreads the first polls of many replicas.
func (p *Poller) firstDelay() time.Duration {
	return time.Duration(rand.Float64() * float64(min(p.config.Interval, time.Second)))
}

// soon is a fraction of the interval, different each time.
func (p *Poller) soon() time.Duration { return p.firstDelay()/8 + time.Millisecond }
