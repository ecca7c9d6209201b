package integration

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

type replicaStatus = selection.ReplicaStatus

func TestConversationStaysWhereItsPrefixIs(t *testing.T) {
	r := newRig(t, 4, engine.Options{}, "", "")
	system := text(1, 4000)
	first := r.send(t.Context(), chat{System: system, User: "one", MaxTokens: 8})
	if first.Status != 200 || !first.Complete || first.Reason != "cold" {
		t.Fatalf("first answer: %+v", first)
	}
	for i := range 5 {
		next := r.send(t.Context(), chat{System: system, User: fmt.Sprint("again ", i), MaxTokens: 8})
		if next.Replica != first.Replica || next.Reason != "prefix" {
			t.Errorf("request %d went to %s for %s, want %s for prefix", i, next.Replica, next.Reason, first.Replica)
		}
		if !next.Complete {
			t.Errorf("answer: %+v", next)
		}
		if next.Cached < next.Prompt*9/10 {
			t.Errorf("the engine found %d of %d prompt tokens cached", next.Cached, next.Prompt)
		}
		if next.Matched < 3500 {
			t.Errorf("only %d of about 4000 tokens were expected to be cached", next.Matched)
		}
	}
}

func TestBodyArrivesByteForByte(t *testing.T) {
	r := newRig(t, 2, engine.Options{Record: true}, "max_prompt 64KiB", "")
	for _, tokens := range []int{10, 4000, 40_000} { // the last one is longer than max_prompt
		c := chat{System: text(7, tokens), User: "é \" \\ \u2028 end", MaxTokens: 2}
		if a := r.send(t.Context(), c); a.Status != 200 {
			t.Fatalf("answer: %+v", a)
		}
		found := false
		for _, e := range r.engines {
			for _, request := range e.Requests() {
				found = found || bytes.Equal(request.Body, c.body())
			}
		}
		if !found {
			t.Errorf("no engine received the body of %d tokens as it was sent", tokens)
		}
	}
}

func TestBurstOfOnePromptSpreadsAndThenFollowsTheHolders(t *testing.T) {
	r := newRig(t, 4, engine.Options{}, "", "")
	c := chat{System: text(3, 2000), User: "the same", MaxTokens: 32}
	burst := make([]chat, 64)
	for i := range burst {
		burst[i] = c
	}
	answers := r.sendAll(burst)
	holders := share(answers)
	for replica, n := range holders {
		if n > 32 {
			t.Errorf("%s got %d of 64 requests", replica, n)
		}
	}
	for _, a := range answers {
		if a.Status != 200 || !a.Complete {
			t.Fatalf("answer: %+v", a)
		}
	}
	r.awaitEmptyLedgers()
	after := r.send(t.Context(), c)
	// All replicas hold the prompt, and some may be trusted less after the burst.
	if holders[after.Replica] == 0 || after.Matched == 0 || after.Cached < after.Prompt/2 {
		t.Errorf("the next one went to %s for %s and found %d tokens; holders: %v", after.Replica, after.Reason, after.Cached, holders)
	}
}

func TestRequestsWithoutPromptAreRouted(t *testing.T) {
	r := newRig(t, 2, engine.Options{}, "fallback first", "")
	response, err := r.get("/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 200 {
		t.Errorf("status = %d", response.StatusCode)
	}
	if m := explanation.FindStringSubmatch(response.Header.Get("Cache-Aware")); m == nil || m[3] != "fallback" || m[1] != r.engines[0].Addr() {
		t.Errorf("explanation = %q, want the first replica for fallback", response.Header.Get("Cache-Aware"))
	}
}

// TestLengthOfPromptsIsLearned has a tokenizer that makes far more tokens of a
// text than is usual, and tells so in its answers.
func TestLengthOfPromptsIsLearned(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		silent  bool
	}{"streamed": {often, false}, "whole": {"engine none", true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, engine.Options{}, c.options, "")
			off := func(a answer) float64 {
				if a.Status != 200 || a.Prompt == 0 {
					t.Fatalf("answer: %+v", a)
				}
				return float64(a.Expected)/float64(a.Prompt) - 1
			}
			prompts := distinct(0, 20, 500)
			for i := range prompts {
				prompts[i].Silent = c.silent
			}
			answers := r.sendEach(prompts)
			if first := off(answers[0]); first > -0.1 && first < 0.1 {
				t.Fatalf("the estimate of the first prompt is off by only %.0f %%", first*100)
			}
			r.load() // what was learned stays
			for _, prompt := range distinct(1000, 3, 2000) {
				prompt.Silent = c.silent
				if last := off(r.send(t.Context(), prompt)); last < -0.05 || last > 0.05 {
					t.Errorf("after 20 answers the estimate is off by %.0f %%", last*100)
				}
			}
		})
	}
}
