package fleet

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// alternate chooses the candidates by turns and remembers nothing.
type alternate struct{ turn int }

func (a *alternate) Choose(_ time.Duration, _ *Request, candidates []int) int {
	a.turn++
	return candidates[a.turn%len(candidates)]
}
func (*alternate) Configure(Knowledge)                          {}
func (*alternate) Report(time.Duration, int, *selection.Report) {}
func (*alternate) FirstToken(time.Duration, *Request)           {}
func (*alternate) End(time.Duration, *Request)                  {}
func (*alternate) Fail(time.Duration, *Request)                 {}

func TestSeriesAddUpToTheResult(t *testing.T) {
	w := workload.Prompts{
		Rate: 20, Duration: 20 * time.Second, Prefixes: 3, PrefixTokens: 3000, OwnTokens: 300, AnswerTokens: 50,
	}.Workload(1)
	o := Options{Workload: w, Replicas: replicas(3, engine.H100x8B), Events: []Event{
		{At: 5 * time.Second, Kind: Crash, Replica: 1},
	}}
	reported := time.Duration(0)
	recorder := Record(&alternate{}, 3, time.Minute, 30, func(now time.Duration) { reported = now })
	result, err := Run(o, recorder)
	if err != nil {
		t.Fatal(err)
	}
	series := recorder.Series()
	prompt, cached := 0, 0
	for i, n := range series.PromptTokens {
		prompt += n
		cached += series.CachedTokens[i]
	}
	if prompt != result.PromptTokens || cached != result.CachedTokens || cached == 0 {
		t.Errorf("%d of %d tokens cached, the result has %d of %d", cached, prompt, result.CachedTokens, result.PromptTokens)
	}
	inFlight, answered := 0.0, 0.0
	for _, replica := range series.InFlight {
		for _, n := range replica {
			inFlight += n * series.Step.Seconds()
		}
	}
	for _, d := range result.EndToEnd {
		answered += d.Seconds()
	}
	if math.Abs(inFlight/answered-1) > 1e-6 {
		t.Errorf("%.3f request seconds in flight, want %.3f", inFlight, answered)
	}
	if reported < 19*time.Second {
		t.Errorf("progress ended at %v", reported)
	}
}

func TestSeriesEndsWithItsLastStep(t *testing.T) {
	r := Record(&alternate{}, 2, 10*time.Second, 5, nil)
	q := &Request{Arrived: 3 * time.Second, Prompt: 100}
	q.Replica = r.Choose(3*time.Second, q, []int{0, 1})
	late := &Request{Arrived: 11 * time.Second, Prompt: 100}
	late.Replica = r.Choose(11*time.Second, late, []int{0, 1})
	r.End(12*time.Second, q)
	r.End(13*time.Second, late)
	s := r.Series()
	if !slices.Equal(s.InFlight[1], []float64{0, 0.5, 1, 1, 1}) || slices.Max(s.InFlight[0]) > 0 {
		t.Errorf("in flight %v", s.InFlight)
	}
	rates, known := s.HitRates()
	if !slices.Equal(known, []bool{false, true, false, false, false}) || rates[1] != 0 {
		t.Errorf("hit rates %v known %v", rates, known)
	}
}
