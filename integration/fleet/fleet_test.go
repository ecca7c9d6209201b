package fleet

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

func replicas(n int, p engine.Profile) []engine.Profile {
	list := make([]engine.Profile, n)
	for i := range list {
		list[i] = p
	}
	return list
}

func smallRun(t *testing.T, policy string, events ...Event) (*Result, *workload.Workload) {
	t.Helper()
	w := workload.Prompts{
		Rate: 40, Duration: 20 * time.Second, Prefixes: 10, PrefixTokens: 3000, Skew: 1,
		OwnTokens: 300, AnswerTokens: 50,
	}.Workload(1)
	return runOn(t, policy, Options{Workload: w, Replicas: replicas(4, engine.H100x8B), Events: events}), w
}

func runOn(t *testing.T, policy string, o Options) *Result {
	t.Helper()
	router, err := NewRouter(policy, o.Replicas, 1)
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(o, router)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestEveryRequestEndsUnderEveryPolicy(t *testing.T) {
	for _, policy := range Policies() {
		t.Run(policy, func(t *testing.T) {
			result, w := smallRun(t, policy)
			if want := w.Requests(); result.Requests != want || result.All != want || want < 300 {
				t.Errorf("%d requests counted, %d ended, want %d", result.Requests, result.All, want)
			}
			again, _ := smallRun(t, policy)
			if !reflect.DeepEqual(result, again) {
				t.Error("the same seed ran differently")
			}
		})
	}
}

func TestEveryRequestEndsThroughEvents(t *testing.T) {
	events := []Event{
		{At: 4 * time.Second, Kind: Slow, Replica: 1, Factor: 3},
		{At: 5 * time.Second, Kind: Crash, Replica: 0},
		{At: 8 * time.Second, Kind: Leave, Replica: 2},
		{At: 12 * time.Second, Kind: Join, Replica: 3},
		{At: 14 * time.Second, Kind: Join, Replica: 2},
	}
	for _, policy := range Policies() {
		t.Run(policy, func(t *testing.T) {
			result, w := smallRun(t, policy, events...)
			if want := w.Requests(); result.All != want {
				t.Errorf("%d ended, want %d", result.All, want)
			}
			if policy != OwnPolicy {
				return // some of the others drop nothing at this load, or shun the newcomer
			}
			if result.Retried == 0 || result.Computed[3] == 0 {
				t.Errorf("%d dropped by the crash, %d tokens computed by the newcomer, want some",
					result.Retried, result.Computed[3])
			}
		})
	}
}

func TestClosedLoopTurnsWaitForAnswers(t *testing.T) {
	w := workload.Agents{
		Users: 5, Sessions: 10, Kinds: 2, ToolCount: 3, ToolTokens: 50, SystemTokens: 500,
		MinTurns: 3, MaxTurns: 6, AddedTokens: 200, AnswerTokens: 100, Think: time.Second,
	}.Workload(1)
	result := runOn(t, OwnPolicy, Options{Workload: w, Replicas: replicas(2, engine.H100x8B)})
	if result.All != w.Requests() {
		t.Errorf("%d ended, want %d", result.All, w.Requests())
	}
	if hit := result.HitRate(); hit < 0.7 {
		t.Errorf("hit rate %.2f, want most of every conversation", hit)
	}
}

// What an engine finds in its cache must not depend on who made the keys.
func TestKeysAgreeWithTranscripts(t *testing.T) {
	w := workload.Agents{
		Users: 1, Sessions: 6, Kinds: 2, ToolCount: 3, ToolTokens: 50, SystemTokens: 500,
		MinTurns: 3, MaxTurns: 6, AddedTokens: 200, AnswerTokens: 100,
	}.Workload(3)
	one, other := engine.New(engine.H100x8B), engine.New(engine.H100x8B)
	now := time.Duration(0)
	for i := range w.Sessions {
		h, transcript := newHistory(&w.Sessions[i]), workload.NewTranscript(&w.Sessions[i], 16)
		for r := h.next(16); r != nil; r = h.next(16) {
			want := transcript.Next()
			for _, run := range []struct {
				e *engine.Engine
				r *engine.Request
			}{{one, &r.sequence}, {other, want}} {
				if err := run.e.Submit(now, run.r); err != nil {
					t.Fatal(err)
				}
				run.e.Advance(now + time.Hour)
			}
			now += time.Hour
			if r.Prompt != want.Prompt || r.Cached() != want.Cached || r.sequence.FirstToken != want.FirstToken {
				t.Fatalf("session %d: prompt %d cached %d, transcript has %d and %d",
					i, r.Prompt, r.Cached(), want.Prompt, want.Cached)
			}
			r.estimate(usual)
			if last := r.Blocks[len(r.Blocks)-1]; int(last.Tokens) != r.Estimated {
				t.Fatalf("text blocks end at %d, prompt is taken to have %d", last.Tokens, r.Estimated)
			}
			if ratio := float64(r.Estimated) / float64(r.Prompt); ratio < 0.9 || ratio > 1.15 {
				t.Fatalf("prompt of %d tokens is taken to have %d", r.Prompt, r.Estimated)
			}
		}
	}
}

// A prompt that continues another one has all of its text blocks.
func TestTextBlocksExtend(t *testing.T) {
	w := workload.Agents{
		Users: 1, Sessions: 1, Kinds: 1, ToolCount: 9, ToolTokens: 90, SystemTokens: 500,
		MinTurns: 30, MaxTurns: 30, AddedTokens: 700, AnswerTokens: 300,
	}.Workload(3)
	h := newHistory(&w.Sessions[0])
	before := h.next(16)
	for r := h.next(16); r != nil; r = h.next(16) {
		n := len(before.Texts)
		if n > 120 {
			break // prompts' ends are not always cuts any more
		}
		if !reflect.DeepEqual(r.Texts[:n], before.Texts) {
			t.Fatal("the next turn does not begin with the blocks of the one before")
		}
		if answer := before.Turn.Answer.Tokens; answer > r.Prompt/tailGrowth && !r.Texts[n].Reply {
			t.Fatal("the block after the prompt's end is not the reply's")
		}
		before = r
	}
}

// Sessions numbered one after the other must not meet on one replica.
func TestSessionsAreSpread(t *testing.T) {
	ring, counts := newRing(8), make([]int, 8)
	for number := range uint64(800) {
		counts[ring.walk(mix(number), func(int) bool { return true }, 0)]++
	}
	if slices.Min(counts) < 50 || slices.Max(counts) > 200 {
		t.Errorf("sessions of each replica: %v", counts)
	}
}
