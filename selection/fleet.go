package selection

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// tie is how close two costs are, in seconds, to be decided by lot.
const tie = 1e-6

// absence is how long a replica must not have been a candidate, with nothing
// in flight, before it is no longer listed and its place may be given away.
const absence = time.Hour

// Fleet is what is known about a set of replicas, and the decision over them.
// Replicas are known by address and join when they are first a candidate.
// Methods are safe for concurrent use.
type Fleet struct {
	residency *Residency
	matches   sync.Pool // of *[]Match
	truth     func(replica string) Truth

	mu         sync.Mutex
	replicas   map[string]*replica
	seen       time.Time // when any of them last was a candidate
	paces      paces
	outputs    outputs
	contention contention
	random     *rand.Rand
	estimates  []Estimate
	candidates []*replica
}

// NewFleet makes a fleet that keeps residency in store. Ties are drawn from a
// source seeded with seed.
func NewFleet(store Store, seed uint64) *Fleet {
	return &Fleet{
		residency: NewResidency(store),
		matches:   sync.Pool{New: func() any { return new([]Match) }},
		replicas:  make(map[string]*replica),
		random:    rand.New(rand.NewPCG(seed, 0)),
	}
}

// Place chooses one of the candidates for a request and books it there. It
// returns nil when there are no candidates. Scoring and booking are one step:
// the next call sees this one's charge.
func (f *Fleet) Place(now time.Time, request *Request, candidates []string) *Booking {
	if len(candidates) == 0 {
		return nil
	}
	matches := f.matches.Get().(*[]Match)
	defer f.matches.Put(matches)
	request = f.match(request, matches)
	considered := make([]Estimate, 0, min(len(candidates), maxConsidered))

	f.mu.Lock()
	estimates := f.score(now, request, candidates, *matches)
	best := f.choose(estimates, request.Avoid)
	b := f.book(now, request, &estimates[best])
	b.Reason = reason(request, estimates, best)
	b.Considered = appendConsidered(considered, estimates, best)
	f.mu.Unlock()

	b.claim = f.residency.Book(now, b.replica.slot, request.marks())
	return b
}

// match looks up what each replica holds of the prompt, or which one served
// its hints, and returns the request to be estimated. It takes no lock, so
// requests do not wait for each other's lookups.
func (f *Fleet) match(request *Request, into *[]Match) *Request {
	slots := f.residency.Slots()
	*into = slices.Grow((*into)[:0], slots)[:slots]
	f.residency.Match(request.Blocks, *into)
	if request.searchesHints() {
		return f.matchHints(request, *into)
	}
	return request
}

// score estimates the request on each candidate. The result is valid until
// the lock is released.
func (f *Fleet) score(now time.Time, request *Request, candidates []string, matches []Match) []Estimate {
	f.candidates = f.candidates[:0]
	for _, address := range candidates {
		r := f.join(address, now)
		r.configure(request.Capacity)
		f.resize(r)
		f.candidates = append(f.candidates, r)
	}
	f.seen = now // after all have joined: an idle hour makes none of them absent
	return f.estimateAll(now, request, matches)
}

// estimateAll estimates the request on f.candidates.
func (f *Fleet) estimateAll(now time.Time, request *Request, matches []Match) []Estimate {
	f.estimates = f.estimates[:0]
	mean, cell := f.survey(now), modelCell(request.Model)
	for _, r := range f.candidates {
		e := f.estimate(r, request, r.holds(request, matches), mean, now)
		e.Failing = r.failures.price(cell, now)
		e.Cost += e.Failing
		f.estimates = append(f.estimates, e)
	}
	return f.estimates
}

// survey is what f.candidates are like on average now.
func (f *Fleet) survey(now time.Time) survey {
	mean := surveyOf(f.candidates, now)
	contending := 0
	for _, r := range f.candidates {
		r.turnover = 0
		if r.contends() {
			r.turnover = f.residency.Turnover(r.slot, now)
			contending++
		}
		mean.turnover += r.turnover
	}
	mean.turnover /= float64(max(contending, 1))
	return mean
}

// holds is what a replica holds of a prompt; one that joined after the lookup
// holds nothing. Where slots are private the index says too much, but it alone
// knows hints.
func (r *replica) holds(request *Request, matches []Match) Match {
	if r.sequences.known() && !request.hinted {
		return r.sequences.match(request.Blocks, request.Tokens)
	}
	if int(r.slot) < len(matches) {
		return matches[r.slot]
	}
	return Match{}
}

// choose returns the index of the cheapest estimate, by lot among equals.
// Replicas to avoid are considered only when all are.
func (f *Fleet) choose(estimates []Estimate, avoid []string) int {
	best, equals := -1, 0
	for i := range estimates {
		if slices.Contains(avoid, estimates[i].Replica) {
			continue
		}
		switch {
		case best < 0 || estimates[i].Cost < estimates[best].Cost-tie:
			best, equals = i, 1
		case estimates[i].Cost <= estimates[best].Cost+tie:
			if equals++; f.random.IntN(equals) == 0 {
				best = i
			}
		}
	}
	if best < 0 {
		return f.choose(estimates, nil)
	}
	return best
}

func (f *Fleet) book(now time.Time, request *Request, e *Estimate) *Booking {
	r := f.replicas[e.Replica]
	b := &Booking{
		Estimate:   *e,
		fleet:      f,
		replica:    r,
		model:      request.Model,
		work:       request.Work,
		began:      now,
		prefill:    seconds(e.Prefill),
		prompt:     request.Tokens + request.Extra,
		unindexed:  request.unindexed(),
		answer:     f.answer(request),
		blocks:     request.Blocks,
		streamed:   request.Streamed,
		generation: r.generation,
	}
	if request.hinted {
		b.Estimate.Held = Match{} // assumed, so no answer can prove it wrong
	}
	r.tally.booked++
	r.ledger.add(b, now)
	r.sequences.begin(b)
	r.rates.book(now, e.Prefill)
	return b
}

func reason(request *Request, estimates []Estimate, best int) Reason {
	if len(estimates) == 1 {
		return ReasonOnly
	}
	if len(request.Blocks) == 0 && !request.hinted {
		return ReasonLoad
	}
	longest := 0
	for i := range estimates {
		longest = max(longest, estimates[i].Matched)
	}
	switch {
	case longest == 0:
		return ReasonCold
	case estimates[best].Matched < longest:
		return ReasonSpread
	case request.hinted:
		return ReasonHint
	default:
		return ReasonPrefix
	}
}

// join returns the replica at an address, making a place for it at first sight.
func (f *Fleet) join(address string, now time.Time) *replica {
	r := f.replicas[address]
	if r == nil {
		f.leaveAbsent()
		r = &replica{address: address, speed: DefaultSpeed, capacity: DefaultCapacity, trust: usualTrust}
		r.slot = f.residency.Join(r.capacity)
		f.replicas[address] = r
	}
	r.seen = now
	return r
}

// leaveAbsent takes out replicas that are long gone. It runs when one joins,
// which is when places are needed.
func (f *Fleet) leaveAbsent() {
	for address, r := range f.replicas {
		if f.absent(r) {
			f.residency.Leave(r.slot)
			delete(f.replicas, address)
		}
	}
}

// absent tells whether a replica is long gone: it was no candidate while others
// were. While nothing is asked for at all, nobody is.
func (f *Fleet) absent(r *replica) bool {
	return r.ledger.inFlight() == 0 && f.seen.Sub(r.seen) > absence
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Close empties the index and frees it. Bookings may still be closed.
func (f *Fleet) Close() error {
	f.residency.Close()
	return nil
}
