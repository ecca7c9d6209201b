package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// A replica that loses its cache without a word is found out: from the first
// evidence on at most five requests are promised what is not there, and at most
// ten after a reset, of which nothing but answers and counters tells: a prompt
// that was computed again before it was noticed is found, and ends the doubt.
func TestLearningLostCache(t *testing.T) {
	byVolume(t)
	const at = 60 * time.Second
	events := []struct {
		name  string
		event Event
	}{
		{"restart", Event{Kind: Crash}},
		{"restart of 10 s", Event{Kind: Crash, For: 10 * time.Second}},
		{"reset", Event{Kind: Reset}},
		{"sleep of 20 s", Event{Kind: Sleep, For: 20 * time.Second}},
	}
	tellings := []struct {
		name    string
		knowing Knowledge
	}{
		{"usage and metrics", RouterVisible},
		{"usage only", Knowledge{Usage: true}},
		{"metrics only", Knowledge{Metrics: time.Second, Delay: 50 * time.Millisecond}},
	}
	for _, e := range events {
		for _, told := range tellings {
			what := e.name + ", " + told.name
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				var most float64
				for _, seed := range learningSeeds() {
					event := e.event
					event.At, event.Replica = at, 3
					most = max(most, float64(falsePromises(t, event, told.knowing, seed)))
				}
				limit := 5.0
				if e.event.Kind == Reset {
					limit = 10
				}
				bar(t, what+": false promises", most, limit)
			})
		}
	}
}

// falsePromises counts requests that were placed on a replica after the first
// evidence of its loss and promised a good part of a prompt that was not there.
func falsePromises(t *testing.T, event Event, knowing Knowledge, seed uint64) int {
	t.Helper()
	o := ample(t, seed)
	o.Events, o.Knowledge = []Event{event}, &knowing
	samples := record(t, o, seed)
	from := evidence(samples, event, knowing)
	n := 0
	for _, s := range samples {
		if s.replica == event.Replica && s.placed >= from && unkept(s) {
			n++
		}
	}
	return n
}

// ample draws a workload which fits into the caches as a whole, so that nothing
// is ever missing that was there before.
func ample(t *testing.T, seed uint64) Options {
	t.Helper()
	o := scenario(t, "tool-heavy", 0.5, seed, 2*time.Minute)
	for i := range o.Replicas {
		o.Replicas[i].Blocks *= 16
	}
	return o
}

// unkept says that a good part of what was promised was not there.
func unkept(s sample) bool { return s.promise-s.cached > max(512, s.prompt/10) }

// evidence is when the router first hears of the loss: by an answer, or by the
// first poll that has certainly come after something to tell, which is the
// event itself, or the first prompt that was not found. A connection that breaks
// is none.
func evidence(samples []sample, event Event, knowing Knowledge) time.Duration {
	counted, answered := engine.Never, engine.Never
	for _, s := range samples {
		if s.replica == event.Replica && s.admitted >= event.At && unkept(s) {
			counted, answered = min(counted, s.admitted), min(answered, s.finished)
		}
	}
	switch event.Kind {
	case Crash:
		counted = event.At + event.For
	case Sleep:
		counted = event.At
	}
	first := engine.Never
	if knowing.Usage {
		first = answered
	}
	if knowing.Metrics > 0 && counted != engine.Never {
		first = min(first, counted+knowing.Metrics*11/10+knowing.Delay*3/2)
	}
	return first
}

// Without an event nothing is missing, or the test above would count it.
func TestLearningLostCacheCountsNothingElse(t *testing.T) {
	byVolume(t)
	samples := record(t, ample(t, 1), 1)
	if slices.ContainsFunc(samples, unkept) {
		t.Error("promises are not kept though no replica lost its cache")
	}
}
