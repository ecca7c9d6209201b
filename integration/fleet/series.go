package fleet

import "time"

// Series is how a run went over time, in steps of equal length from its
// beginning. What happens after the last step is not in it.
type Series struct {
	Step time.Duration
	// PromptTokens and CachedTokens are those of the requests that arrived in
	// each step.
	PromptTokens, CachedTokens []int
	// InFlight is, for each replica, the mean number of requests it had in each
	// step.
	InFlight [][]float64
}

// HitRates are the shares of prompt tokens that were cached, step by step; known
// is false for steps in which nothing arrived.
func (s *Series) HitRates() (rates []float64, known []bool) {
	rates, known = make([]float64, len(s.PromptTokens)), make([]bool, len(s.PromptTokens))
	for i, n := range s.PromptTokens {
		if n > 0 {
			rates[i], known[i] = float64(s.CachedTokens[i])/float64(n), true
		}
	}
	return rates, known
}

// newSeries has so many steps until a time, of so many replicas.
func newSeries(replicas int, until time.Duration, steps int) *Series {
	s := &Series{
		Step:         max(1, until/time.Duration(steps)),
		PromptTokens: make([]int, steps),
		CachedTokens: make([]int, steps),
		InFlight:     make([][]float64, replicas),
	}
	for i := range s.InFlight {
		s.InFlight[i] = make([]float64, steps)
	}
	return s
}

// add notes a request that has ended.
func (s *Series) add(q *Request) {
	if s == nil {
		return
	}
	if step := int(q.Arrived / s.Step); step < len(s.PromptTokens) {
		s.PromptTokens[step] += q.Prompt
		s.CachedTokens[step] += q.Cached()
	}
}

// Recorder is a router that lets another one choose and notes what happens.
type Recorder struct {
	Router
	series  *Series
	now     []int           // requests in flight, by replica
	changed []time.Duration // when that last changed
	// progress is told of the time of every request; may be nil.
	progress func(now time.Duration)
}

// Record notes what a router does to so many replicas until a time, in that many
// steps. Progress, if not nil, is told the time of every request.
func Record(router Router, replicas int, until time.Duration, steps int, progress func(now time.Duration)) *Recorder {
	return &Recorder{
		Router: router, series: newSeries(replicas, until, steps), progress: progress,
		now: make([]int, replicas), changed: make([]time.Duration, replicas),
	}
}

// Series is what was noted, to be called when the run is over.
func (r *Recorder) Series() *Series {
	for i := range r.now {
		r.count(i, r.series.Step*time.Duration(len(r.series.PromptTokens)), 0)
	}
	return r.series
}

// Choose implements Router.
func (r *Recorder) Choose(now time.Duration, q *Request, candidates []int) int {
	if r.progress != nil {
		r.progress(now)
	}
	replica := r.Router.Choose(now, q, candidates)
	r.count(replica, now, 1)
	return replica
}

// End implements Router.
func (r *Recorder) End(now time.Duration, q *Request) {
	r.count(q.Replica, now, -1)
	r.series.add(q)
	r.Router.End(now, q)
}

// Fail implements Router.
func (r *Recorder) Fail(now time.Duration, q *Request) {
	r.count(q.Replica, now, -1)
	r.Router.Fail(now, q)
}

// count adds to a replica's requests in flight, after spreading those that it had
// until now over the steps.
func (r *Recorder) count(replica int, now time.Duration, change int) {
	into := r.series.InFlight[replica]
	for at := r.changed[replica]; at < now; {
		step := int(at / r.series.Step)
		if step >= len(into) {
			break
		}
		end := min(now, r.series.Step*time.Duration(step+1))
		into[step] += float64(r.now[replica]) * float64(end-at) / float64(r.series.Step)
		at = end
	}
	r.changed[replica] = max(now, r.changed[replica])
	r.now[replica] += change
}
