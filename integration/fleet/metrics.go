package fleet

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// metrics asks every replica how it is, in turn, and hands the answer to the
// router when it has travelled.
type metrics struct {
	router   Router
	knowing  Knowledge
	clocks   clocks
	random   *rand.Rand
	last     []health.Report     // of each replica, in front of which it is judged
	underway []*selection.Report // told by each replica, nil when it is to be asked
	asked    []time.Duration
}

// newMetrics returns nil when the router is to see none.
func newMetrics(router Router, k Knowledge, replicas int) *metrics {
	if k.Metrics == 0 {
		return nil
	}
	m := &metrics{
		router: router, knowing: k, random: rand.New(rand.NewPCG(uint64(replicas), 0x3e721c5)),
		last:     make([]health.Report, replicas),
		underway: make([]*selection.Report, replicas),
		asked:    make([]time.Duration, replicas),
	}
	for i := range replicas {
		m.clocks.add(i)
		m.clocks.set(i, time.Duration(m.random.Float64()*float64(k.Metrics)))
	}
	return m
}

// next is when something is asked or handed over.
func (m *metrics) next() time.Duration {
	if m == nil {
		return engine.Never
	}
	return m.clocks.next[m.clocks.order[0]]
}

// ask takes what a replica says and hands it over after the delay.
func (m *metrics) ask(now time.Duration, replica int, e *engine.Engine) {
	page := tell(now, e)
	before := m.last[replica]
	page.Restarted = !before.At.IsZero() && page.RestartedSince(before)
	m.last[replica] = page
	m.underway[replica], m.asked[replica] = report(&page), now
	m.clocks.set(replica, now+m.jittered(m.knowing.Delay, 0.5))
}

// deliver hands over what was told, and sets the time for the next question.
func (m *metrics) deliver(now time.Duration, replica int) {
	m.router.Report(now, replica, m.underway[replica])
	m.underway[replica] = nil
	m.clocks.set(replica, max(now, m.asked[replica]+m.jittered(m.knowing.Metrics, 0.1)))
}

// missed is a question that a replica which is down does not answer.
func (m *metrics) missed(now time.Duration, replica int) {
	m.clocks.set(replica, now+m.jittered(m.knowing.Metrics, 0.1))
}

// jittered is d, more or less by at most a share.
func (m *metrics) jittered(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 - share + 2*share*m.random.Float64()))
}

// tell is what package health reads off a replica's pages.
func tell(now time.Duration, e *engine.Engine) health.Report {
	nan := math.NaN()
	p, s := e.Profile(), e.Stats()
	r := health.Report{
		At: origin.Add(now), Engine: p.Dialect.String(), Sleeping: e.Sleeping(now),
		Running: nan, Waiting: nan, KVUsage: nan, CapacityTokens: nan, BlockTokens: nan,
		Slots: nan, ContextTokens: nan, StartTime: nan, PrefixQueries: nan, PrefixHits: nan,
		PromptTokens: nan, PrefillSeconds: nan, ComputedTokens: nan,
	}
	switch p.Dialect {
	case engine.VLLMPages:
		r.KVUsage = float64(s.UsedTokens) / float64(p.Capacity())
		r.CapacityTokens, r.BlockTokens = float64(p.Capacity()), float64(p.BlockSize)
		r.StartTime = float64(origin.Add(e.Started()).UnixNano()) / 1e9
	case engine.LlamaCppPages:
		r.CapacityTokens, r.BlockTokens = float64(p.Capacity()), 1
		r.Slots, r.ContextTokens = float64(p.MaxSequences), float64(p.MaxTokens())
		r.PrivateSlots = true
	case engine.OllamaPages:
		r.Slots, r.SlotsAssumed, r.PrivateSlots = 1, true, true
		r.ContextTokens = float64(p.MaxTokens())
		r.CapacityTokens = r.ContextTokens
		return r
	default:
		return r
	}
	r.Running, r.Waiting = float64(s.Running), float64(s.Waiting)
	r.PrefixQueries, r.PrefixHits = float64(s.QueriedTokens), float64(s.CachedTokens)
	r.PromptTokens = float64(s.PromptTokens)
	r.PrefillSeconds, r.ComputedTokens = s.PrefillTime.Seconds(), float64(s.UncachedTokens)
	return r
}

// report is a page in the terms of package selection.
func report(page *health.Report) *selection.Report {
	return &selection.Report{
		At: page.At, Restarted: page.Restarted, Sleeping: page.Sleeping,
		NoPrefixCaching: page.PrefixCaching == health.Off, PrivateSlots: page.PrivateSlots,
		Running: page.Running, Waiting: page.Waiting,
		CapacityTokens: page.CapacityTokens, Slots: page.Slots,
		PrefixQueries: page.PrefixQueries, PrefixHits: page.PrefixHits,
	}
}
