package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// board is what the published rules go by: own counts, which are never stale,
// and the same residency index that cache_aware has, with the true capacities.
// That is more than most of their originals know.
type board struct {
	rule      rule
	residency *selection.Residency
	replicas  []tally
	held      []selection.Match
	random    *rand.Rand
	turn      int
	ring      *ring
	buffer    []int
}

// tally counts what a replica has been given and has not done.
type tally struct {
	queued, running int
	pending         int // prompt tokens to be computed, of the queued
	context         int // prompt tokens of all in flight
	capacity        int
	window          window
}

func (t *tally) inFlight() int { return t.queued + t.running }

// rule chooses one of the candidates; board.held says what each replica holds.
type rule func(b *board, now time.Duration, r *Request, candidates []int) int

// ticket is what a request was booked with.
type ticket struct {
	claim    *selection.Claim
	uncached int
	waiting  bool
}

func newBoard(rule rule, profiles []engine.Profile, seed uint64) *board {
	b := &board{
		rule:      rule,
		residency: selection.NewResidency(selection.NewMapStore()),
		replicas:  make([]tally, len(profiles)),
		held:      make([]selection.Match, len(profiles)),
		random:    rand.New(rand.NewPCG(seed, 0xb0a2d)),
		ring:      newRing(len(profiles)),
	}
	for i, p := range profiles {
		b.residency.Join(p.Capacity())
		b.replicas[i].capacity = p.Capacity()
	}
	return b
}

func (b *board) Choose(now time.Duration, r *Request, candidates []int) int {
	r.estimate(usual)
	b.residency.Match(r.Blocks, b.held)
	chosen := b.rule(b, now, r, candidates)
	t := &b.replicas[chosen]
	ticket := &ticket{uncached: b.uncached(r, chosen), waiting: true}
	t.window.add(now, e2Seconds(r, ticket.uncached))
	t.queued++
	t.pending += ticket.uncached
	t.context += r.Estimated
	ticket.claim = b.residency.Book(time.Unix(0, int64(now)), selection.Slot(chosen), r.Blocks)
	r.placed = ticket
	return chosen
}

// Configure and Report do nothing: the published rules know what a board knows.
func (b *board) Configure(Knowledge) {}

// Report implements Router.
func (b *board) Report(time.Duration, int, *selection.Report) {}

func (b *board) FirstToken(_ time.Duration, r *Request) {
	ticket, t := r.placed.(*ticket), &b.replicas[r.Replica]
	t.queued--
	t.running++
	t.pending -= ticket.uncached
	ticket.waiting = false
	ticket.claim.Confirm()
}

func (b *board) End(_ time.Duration, r *Request) {
	t := &b.replicas[r.Replica]
	t.running--
	t.context -= r.Estimated
	r.placed.(*ticket).claim.Release(r.Turn.Answer.Tokens)
}

func (b *board) Fail(_ time.Duration, r *Request) {
	ticket, t := r.placed.(*ticket), &b.replicas[r.Replica]
	if ticket.waiting {
		t.queued--
		t.pending -= ticket.uncached
	} else {
		t.running--
	}
	t.context -= r.Estimated
	ticket.claim.Undo()
	b.residency.Forget(selection.Slot(r.Replica))
}

// matched is how many of the prompt's tokens a replica is expected to hold.
func (b *board) matched(i int) int {
	return int(b.held[i].Pending + (b.held[i].Maybe-b.held[i].Pending)/2)
}

func (b *board) uncached(r *Request, i int) int { return max(1, r.Estimated-b.matched(i)) }

// least returns the candidate with the least of something, by lot among equals.
func (b *board) least(candidates []int, of func(i int) float64) int {
	best, low, equals := -1, 0.0, 0
	for _, i := range candidates {
		v := of(i)
		switch {
		case best < 0 || v < low:
			best, low, equals = i, v, 1
		case v == low:
			if equals++; b.random.IntN(equals) == 0 {
				best = i
			}
		}
	}
	return best
}

func (b *board) requests(i int) float64 { return float64(b.replicas[i].inFlight()) }

// filter returns the candidates that satisfy keep, valid until the next call.
func (b *board) filter(candidates []int, keep func(i int) bool) []int {
	b.buffer = b.buffer[:0]
	for _, i := range candidates {
		if keep(i) {
			b.buffer = append(b.buffer, i)
		}
	}
	return b.buffer
}

// longest returns the candidates that hold most of the prompt, and how much.
func (b *board) longest(candidates []int) (holders []int, tokens int) {
	for _, i := range candidates {
		tokens = max(tokens, b.matched(i))
	}
	return b.filter(candidates, func(i int) bool { return b.matched(i) == tokens }), tokens
}

// spread is the mean, least and most requests in flight of the candidates.
func (b *board) spread(candidates []int) (mean, low, high float64) {
	low = b.requests(candidates[0])
	for _, i := range candidates {
		n := b.requests(i)
		mean += n
		low, high = min(low, n), max(high, n)
	}
	return mean / float64(len(candidates)), low, high
}
