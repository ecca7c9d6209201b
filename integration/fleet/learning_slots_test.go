package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// Requests do not queue at a small replica, or anywhere else, while another one
// could start them sooner.
func TestLearningSlots(t *testing.T) {
	byVolume(t)
	large, small := engine.H100x8B, engine.LlamaCpp
	silent := engine.Ollama
	silent.Dialect = engine.NoPages
	fleets := []struct {
		name     string
		replicas []engine.Profile
		rate     float64
		most     float64
	}{
		// A tenth of a second can be worth it, since another large batch decodes on.
		{"four slots and one beside two large ones", []engine.Profile{large, large, small, engine.Ollama}, 9, 0.001},
		// It takes some requests that wait to learn what is not told.
		{"four slots and one, which tells nothing, beside two large ones", []engine.Profile{large, large, small, silent}, 9, 0.002},
		// What a slot still holds is uncertain, and worth waiting for when it does.
		{"three with four slots and one with one", []engine.Profile{small, small, small, engine.Ollama}, 1.6, 0.1},
	}
	for _, fleet := range fleets {
		t.Run(fleet.name, func(t *testing.T) {
			t.Parallel()
			queued, all := 0, 0
			for _, seed := range learningSeeds() {
				q, n := queuedInVain(t, fleet.replicas, fleet.rate, seed)
				queued, all = queued+q, all+n
			}
			bar(t, fmt.Sprintf("%s: share of %d that queued in vain", fleet.name, all), float64(queued)/float64(all), fleet.most)
		})
	}
}

// queuedInVain counts requests that waited for admission while another replica,
// which could have admitted them at once, would have given the first token sooner.
func queuedInVain(t *testing.T, fleet []engine.Profile, rate float64, seed uint64) (queued, all int) {
	t.Helper()
	const slack = 100 * time.Millisecond // several steps
	elsewhere := map[*Request]time.Duration{}
	o := Options{
		Replicas: fleet,
		Workload: workload.Prompts{
			Rate: rate, Duration: 4 * time.Minute, Prefixes: 12, PrefixTokens: 3000, Skew: 0.8,
			OwnTokens: 300, AnswerTokens: 200,
		}.Workload(seed),
	}
	o.watch.placing = func(f *run, r *Request) { elsewhere[r] = f.soonest(r) }
	o.watch.ended = func(r *Request) {
		if r.Arrived < time.Minute {
			return
		}
		all++
		waited := r.sequence.Admitted - r.Placed
		if waited > slack && r.sequence.FirstToken > elsewhere[r]+slack {
			queued++
		}
	}
	runOwn(t, o, seed)
	return queued, all
}

// soonest is when another replica that could admit a request at once would give
// its first token.
func (f *run) soonest(r *Request) time.Duration {
	soonest := engine.Never - time.Hour
	for _, i := range f.candidates {
		e := f.engines[i]
		if i == r.Replica || !e.Admits(&r.sequence) {
			continue
		}
		cached := e.Lookup(&r.sequence)
		soonest = min(soonest, f.now+e.Backlog(f.now)+e.Profile().PrefillTime(cached, r.Prompt-cached))
	}
	return soonest
}

// What slots hold that are not shared is foretold, where metrics tell that they
// are not.
func TestLearningPrivateSlots(t *testing.T) {
	byVolume(t)
	for _, load := range []struct{ share, most float64 }{{0.3, 0.02}, {0.8, 0.05}} {
		var wrong figures
		for _, seed := range learningSeeds() {
			o := scenario(t, "four-slots", load.share, seed, 5*time.Minute)
			wrong = append(wrong, misjudged(record(t, o, seed), time.Minute))
		}
		bar(t, fmt.Sprintf("four slots at load %.1f: hits misjudged", load.share), wrong.mean(), load.most)
	}
}
