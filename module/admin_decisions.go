package module

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// Decision is one past decision.
type Decision struct {
	State        string    `json:"state"`
	Time         time.Time `json:"time"`
	Model        string    `json:"model,omitempty"`
	PromptTokens int       `json:"prompt_tokens"`
	// Attempt is 1, or more when the request is tried again.
	Attempt int              `json:"attempt"`
	Reason  selection.Reason `json:"reason"`
	// Unread says why no prompt could be read.
	Unread  string `json:"unread,omitempty"`
	Replica string `json:"replica"`
	// Candidates is how many replicas there were to choose from, and Considered
	// what was expected of the chosen one and, by cost, of the cheapest others.
	// The longest holder is always among them.
	Candidates int         `json:"candidates"`
	Considered []Candidate `json:"considered"`
	Outcome    Outcome     `json:"outcome"`
}

// Candidate is what a request was expected to cost on one replica.
type Candidate struct {
	Replica  string `json:"replica"`
	Matched  int    `json:"matched_tokens"`
	Uncached int    `json:"uncached_tokens"`
	// Sure and Maybe are tokens that the replica certainly and possibly holds.
	Sure    uint32  `json:"sure_tokens"`
	Maybe   uint32  `json:"maybe_tokens"`
	Wait    float64 `json:"wait_ms"`
	Prefill float64 `json:"prefill_ms"`
	Factor  float64 `json:"factor"`
	Decode  float64 `json:"decode_ms"`
	Failing float64 `json:"failing_ms"`
	Cost    float64 `json:"cost_ms"`
}

// Outcome is what became of an attempt. What is not known is left out.
type Outcome struct {
	Result       string   `json:"result"` // open, answered, failed or cancelled
	TTFT         *float64 `json:"ttft_ms,omitempty"`
	Confirmed    *int     `json:"confirmed_tokens,omitempty"` // of the prompt, found in the cache
	OutputTokens *int     `json:"output_tokens,omitempty"`
}

// decisionsAnswer is what GET /cache_aware/decisions answers.
type decisionsAnswer struct {
	Decisions []Decision `json:"decisions"`
}

// serveDecisions lists the latest decisions, newest first.
func serveDecisions(r *http.Request) (any, error) {
	chosen, err := chosenStates(r.URL.Query().Get("state"))
	if err != nil {
		return nil, err
	}
	answer := decisionsAnswer{Decisions: []Decision{}}
	for _, s := range chosen {
		for _, d := range s.decisions.latest() {
			answer.Decisions = append(answer.Decisions, d.show(s.name))
		}
	}
	slices.SortStableFunc(answer.Decisions, func(a, b Decision) int { return b.Time.Compare(a.Time) })
	return answer, nil
}

func (d *decision) show(state string) Decision {
	return Decision{
		State:        state,
		Time:         d.at,
		Model:        d.model,
		PromptTokens: d.tokens,
		Attempt:      d.attempt,
		Reason:       d.reason,
		Unread:       string(reasonOf(d.unread)),
		Replica:      d.considered[0].Replica,
		Candidates:   d.candidates,
		Considered:   candidatesOf(d.considered),
		Outcome:      d.outcome.show(),
	}
}

func candidatesOf(estimates []selection.Estimate) []Candidate {
	list := make([]Candidate, 0, len(estimates))
	for i := range estimates {
		e := &estimates[i]
		list = append(list, Candidate{
			Replica:  e.Replica,
			Matched:  e.Matched,
			Uncached: e.Uncached,
			Sure:     e.Held.Sure,
			Maybe:    e.Held.Maybe,
			Wait:     thousandths(milliseconds(e.Wait)),
			Prefill:  thousandths(milliseconds(e.Prefill)),
			Factor:   thousandths(e.Factor),
			Decode:   thousandths(milliseconds(e.Decode)),
			Failing:  thousandths(milliseconds(e.Failing)),
			Cost:     thousandths(milliseconds(e.Cost)),
		})
	}
	return list
}

// thousandths rounds for readers.
func thousandths(x float64) float64 { return math.Round(1e3*x) / 1e3 }

func (o *outcome) show() Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	shown := Outcome{Result: string(o.result)}
	if o.result == "" {
		shown.Result = string(resultOpen)
	}
	if o.ttft > 0 {
		shown.TTFT = new(thousandths(milliseconds(o.ttft.Seconds())))
	}
	if o.said.cachedKnown {
		shown.Confirmed = new(o.said.cachedTokens)
	}
	if o.said.outputTokens > 0 {
		shown.OutputTokens = new(o.said.outputTokens)
	}
	return shown
}
