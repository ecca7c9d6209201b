package selection

const (
	// counterPrompts and counterTokens are how many prompts and promised tokens
	// a comparison with a replica's hit counters must be about.
	counterPrompts = 4
	counterTokens  = 8192
	// counterLoss is how many tokens must have been surely promised between two
	// reports for missing ones to show that a cache is lost, and lossShare which
	// share of them is too few then, if several prompts missed them.
	counterLoss = 2048
	lossShare   = 0.5
	// counterForeign is how many times our own work a replica may have in all
	// for its counters to speak of our prompts.
	counterForeign = 1.25
)

// counters compare what was promised with what a replica counts as found, for
// answers that do not say it themselves.
type counters struct {
	known         bool
	queries, hits float64 // at the last comparison
	generation    int     // of the promises below
	checked       bool    // an answer has said itself what was found
	last          look

	// Sums over the prompts computed since.
	prompts, tokens            float64
	sure, pending, edge, ghost float64
	promised                   [capacities]float64
}

// look is what happened between two reports.
type look struct {
	queries, hits   float64 // at the report before
	prompts         float64
	tokens, promise float64 // of prompts computed since, and surely promised of them
}

// lost tells whether too little was found of what was surely promised. It
// leaves out reports that came too early to count most of the prompts.
func (l *look) lost(report *Report) bool {
	queries, hits := report.PrefixQueries-l.queries, report.PrefixHits-l.hits
	if l.promise < counterLoss || hits < 0 || queries < l.tokens/2 {
		return false
	}
	share := lossShare
	if l.prompts < 2 {
		share = lostTrust
	}
	return l.tokens*min(1, hits/queries) < share*l.promise
}

// count takes in a booking whose prompt has been computed.
func (c *counters) count(b *Booking) {
	c.last.prompts++
	c.last.tokens += float64(b.prompt)
	c.last.promise += b.claim.promise.at(b.replica.belief.proved)
	if b.generation != c.generation {
		c.reset(b.generation)
	}
	m := &b.Estimate.Held
	c.prompts++
	c.tokens += float64(b.prompt)
	c.sure += float64(m.Sure)
	c.pending += float64(m.Pending)
	c.edge += float64(m.Maybe)
	c.ghost += float64(m.Ghost)
	for i := range c.promised {
		c.promised[i] += b.claim.promise.at(i)
	}
}

func (c *counters) reset(generation int) {
	*c = counters{known: c.known, queries: c.queries, hits: c.hits, generation: generation, last: c.last}
}

// learnCounters compares the promises since the last comparison with what the
// replica's counters say, unless answers tell better or others use it too.
func (f *Fleet) learnCounters(r *replica, report *Report, foreign float64) {
	c := &r.counters
	if !Known(report.PrefixQueries) || !Known(report.PrefixHits) {
		return
	}
	queries, hits := report.PrefixQueries-c.queries, report.PrefixHits-c.hits
	usable := c.known && !c.checked && !report.Restarted && hits >= 0 &&
		foreign < counterForeign && c.generation == r.generation
	last := c.last
	c.last = look{queries: report.PrefixQueries, hits: report.PrefixHits}
	if usable && !r.doubted && !r.sequences.known() && last.lost(report) {
		f.doubt(r)
	} else if usable && (queries < c.tokens/2 || !f.compare(r, c.tokens*min(1, hits/max(queries, 1)))) {
		return // there is more to come
	}
	c.known, c.queries, c.hits = true, report.PrefixQueries, report.PrefixHits
	c.reset(r.generation)
}

// compare learns from how many of the counted tokens were found. It reports
// false when they are too few to tell.
func (f *Fleet) compare(r *replica, found float64) bool {
	c := &r.counters
	switch {
	case c.ghost < checkable:
		return false
	case f.settleDoubt(r, c.pending, c.edge, found):
	case c.prompts < counterPrompts || c.ghost < counterTokens:
		return false
	default:
		r.trust.learn(c.sure, c.pending, c.edge, c.ghost, found)
		f.learnCapacity(r, func(i int) float64 { return c.promised[i] }, c.tokens, found)
	}
	return true
}
