package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// testPolicy is a policy with its pool, outside of a Caddy.
type testPolicy struct {
	*CacheAware
	t    testing.TB
	pool reverseproxy.UpstreamPool
}

// newTestPolicy makes a policy of the given name in front of replicas r0:1, r1:1 ...
func newTestPolicy(t testing.TB, name string, replicas int) testPolicy {
	t.Helper()
	p := testPolicy{&CacheAware{Name: name, logger: zap.NewNop()}, t, nil}
	if err := p.setDefaults(); err != nil {
		t.Fatal(err)
	}
	if err := p.acquireState(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Cleanup() })
	for i := range replicas {
		p.pool = append(p.pool, &reverseproxy.Upstream{Host: new(reverseproxy.Host), Dial: fmt.Sprintf("r%d:1", i)})
	}
	return p
}

// route has a replica chosen for a body, and returns the attempt, which ends
// with the test at the latest.
func (p testPolicy) route(body string) *bookedAttempt {
	p.t.Helper()
	r, cancel := benchmarkRequest([]byte(body))
	p.t.Cleanup(cancel)
	return p.routeRequest(r)
}

func (p testPolicy) routeRequest(r *http.Request) *bookedAttempt {
	p.t.Helper()
	if p.Select(p.pool, r, nil) == nil {
		p.t.Fatal("no replica chosen")
	}
	call := caddyhttp.GetVar(r.Context(), callVar).(*call)
	p.t.Cleanup(call.attempt.abandon)
	p.t.Cleanup(call.body.release)
	return call.attempt
}

// ask sends a request to the admin API and decodes the answer, unless into is
// nil. It returns the status, which Caddy would answer.
func ask(t testing.TB, method, target, body string, into any) int {
	t.Helper()
	mux := http.NewServeMux()
	status := http.StatusOK
	for _, route := range new(adminCacheAware).Routes() {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := route.Handler.ServeHTTP(w, r); err != nil {
				var api caddy.APIError
				if !errors.As(err, &api) {
					t.Errorf("%s %s: %v is not an API error", method, target, err)
				}
				status = api.HTTPStatus
			}
		})
	}
	recorder := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	mux.ServeHTTP(recorder, r)
	if into != nil && status == http.StatusOK {
		decoder := json.NewDecoder(recorder.Body)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
	}
	return status
}

func TestAdminAnswersOnlyWhatItOffers(t *testing.T) {
	newTestPolicy(t, "offered", 1).route(`{"messages":[{"role":"user","content":"a"}]}`)
	for _, test := range []struct {
		method, target string
		want           int
	}{
		{"GET", "/cache_aware/", 200},
		{"HEAD", "/cache_aware/", 200},
		{"POST", "/cache_aware/", 405},
		{"GET", "/cache_aware/other", 404},
		{"GET", "/cache_aware/decisions/", 404},
		{"GET", "/cache_aware/decisions", 200},
		{"GET", "/cache_aware/decisions?state=offered", 200},
		{"GET", "/cache_aware/decisions?state=unknown", 404},
		{"DELETE", "/cache_aware/decisions", 405},
		{"GET", "/cache_aware/explain", 405},
		{"POST", "/cache_aware/explain?state=offered", 200},
		{"POST", "/cache_aware/explain?state=unknown", 404},
		{"POST", "/cache_aware/explain", 404}, // there is no state of the default name
		{"GET", "/cache_aware/residency", 405},
		{"DELETE", "/cache_aware/residency", 200},
		{"DELETE", "/cache_aware/residency?state=unknown", 404},
		{"DELETE", "/cache_aware/residency?replica=r0:1", 200},
		{"DELETE", "/cache_aware/residency?replica=r9:1", 404},
		{"DELETE", "/cache_aware/residency?replica=", 400},
		{"DELETE", "/cache_aware/residency?replica=r0:1&replica=r1:1", 400},
		{"DELETE", "/cache_aware/residency?upstream=r0:1", 400},
		{"DELETE", "/cache_aware/residency?replica=r0%zz", 400},
		{"DELETE", "/cache_aware/residency?state=offered&replica=r0:1", 200},
	} {
		if got := ask(t, test.method, test.target, "", nil); got != test.want {
			t.Errorf("%s %s: status %d, want %d", test.method, test.target, got, test.want)
		}
	}
}

func TestAdminShowsStates(t *testing.T) {
	p := newTestPolicy(t, "shown b", 2)
	newTestPolicy(t, "shown a", 2)
	newTestPolicy(t, "shown a", 2)
	p.route(chatOf("some prompt"))
	var got statusAnswer
	ask(t, "GET", "/cache_aware/", "", &got)
	if len(got.States) != 2 || got.States[0].Name != "shown a" || got.States[1].Name != "shown b" {
		t.Fatalf("states: %+v", got)
	}
	a, b := got.States[0], got.States[1]
	if a.Policies != 2 || len(a.Replicas) != 0 || b.Policies != 1 || len(b.Replicas) != 2 {
		t.Errorf("states: %+v", got)
	}
	if b.Index.Entries == 0 || b.Index.Bytes == 0 || b.Index.Bytes > b.Index.Limit {
		t.Errorf("index: %+v", b.Index)
	}
	if r := b.Replicas[0]; r.Replica != "r0:1" || r.Queued+b.Replicas[1].Queued != 1 || r.Load != nil {
		t.Errorf("replicas: %+v", b.Replicas)
	}
}

// chatOf is a chat of one long message.
func chatOf(text string) string {
	body, err := json.Marshal(map[string]any{
		"model": "m", "stream": true,
		"messages": []map[string]string{{"role": "user", "content": strings.Repeat(text+" ", 2000)}},
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func TestDecisionsAreRememberedWithTheirOutcome(t *testing.T) {
	p := newTestPolicy(t, "remembered", 3)
	first := p.route(chatOf("the same"))
	first.firstToken(first.started.Add(250 * time.Millisecond))
	first.usage(usage{cachedKnown: true, outputTokens: 7, responseID: "not to be kept"})
	first.ended(time.Now())
	p.route(chatOf("the same"))
	p.route("not a prompt").failed(errors.New("refused"), time.Now())

	list := decisionsOf(t, "remembered")
	if len(list) != 3 {
		t.Fatalf("%d decisions", len(list))
	}
	unread, second, oldest := list[0], list[1], list[2]
	if unread.Reason != selection.ReasonLoad || unread.Unread != "not_json" || unread.Outcome.Result != "failed" || unread.PromptTokens != 0 {
		t.Errorf("without a prompt: %+v", unread)
	}
	if second.Reason != selection.ReasonPrefix || second.Replica != oldest.Replica || second.Outcome != (Outcome{Result: "open"}) {
		t.Errorf("second: %+v", second)
	}
	if c := second.Considered[0]; c.Replica != second.Replica || c.Matched == 0 || c.Matched+c.Uncached != second.PromptTokens || c.Cost == 0 {
		t.Errorf("considered: %+v of %d tokens", c, second.PromptTokens)
	}
	o := oldest.Outcome
	if oldest.Reason != selection.ReasonCold || oldest.Model != "m" || oldest.Attempt != 1 || oldest.Candidates != 3 || len(oldest.Considered) != 3 {
		t.Errorf("oldest: %+v", oldest)
	}
	if o.Result != "answered" || *o.TTFT != 250 || *o.Confirmed != 0 || *o.OutputTokens != 7 {
		t.Errorf("outcome: %+v", o)
	}
	if id := p.state.decisions.latest()[2].outcome.said.responseID; id != "" {
		t.Errorf("the answer's id is kept: %q", id)
	}
}

func decisionsOf(t *testing.T, state string) []Decision {
	t.Helper()
	var answer decisionsAnswer
	if status := ask(t, "GET", "/cache_aware/decisions?state="+state, "", &answer); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	return answer.Decisions
}

func TestRetriesAreDecisionsOfTheirOwn(t *testing.T) {
	p := newTestPolicy(t, "retried", 2)
	r, cancel := benchmarkRequest([]byte(chatOf("again")))
	defer cancel()
	p.routeRequest(r)
	p.routeRequest(r)
	list := decisionsOf(t, "retried")
	if len(list) != 2 || list[0].Attempt != 2 || list[0].Replica == list[1].Replica || list[1].Outcome.Result != "failed" {
		t.Errorf("decisions: %+v", list)
	}
}

func TestOnlyTheLatestDecisionsAreRemembered(t *testing.T) {
	p := newTestPolicy(t, "many", 1)
	const n = keptDecisions + 40
	for i := range n {
		p.route(fmt.Sprintf(`{"model":"m%d","messages":[{"role":"user","content":"a"}]}`, i)).abandon()
	}
	list := decisionsOf(t, "many")
	if len(list) != keptDecisions || list[0].Model != fmt.Sprint("m", n-1) || list[keptDecisions-1].Model != fmt.Sprint("m", n-keptDecisions) {
		t.Errorf("%d decisions, from %s to %s", len(list), list[0].Model, list[len(list)-1].Model)
	}
	if list[0].Outcome.Result != "cancelled" {
		t.Errorf("outcome: %+v", list[0].Outcome)
	}
	if counts := p.state.decisions.byReason(); counts[selection.ReasonOnly] != n || len(counts) != len(reasons) {
		t.Errorf("counted: %v", counts)
	}
}

func TestExplainSaysWhatWasUnderstood(t *testing.T) {
	p := newTestPolicy(t, defaultName, 3)
	p.route(chatOf("the same")).ended(time.Now())
	before := p.state.fleet.Status(time.Now())[0].Arrivals
	got := explain(t, "", chatOf("the same"))
	u := got.Understood
	if got.State != defaultName || u.Unread != "" || u.API != "chat" || u.Work != "generate" || u.Model != "m" || u.Blocks == 0 || !u.Stream {
		t.Errorf("understood: %+v", got)
	}
	if len(got.Candidates) != 3 || got.Candidates[0].Matched == 0 || got.Candidates[0].Matched+got.Candidates[0].Uncached != u.PromptTokens {
		t.Errorf("candidates: %+v", got.Candidates)
	}
	if n := len(p.state.decisions.latest()); n != 1 {
		t.Errorf("explaining was counted as a decision: %d", n)
	}
	if after := p.state.fleet.Status(time.Now())[0].Arrivals; after > before {
		t.Errorf("explaining was booked: %v arrivals a second, then %v", before, after)
	}
}

func explain(t *testing.T, query, body string) Explanation {
	t.Helper()
	var got Explanation
	if status := ask(t, "POST", "/cache_aware/explain"+query, body, &got); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	return got
}

func TestExplainOfOtherRequests(t *testing.T) {
	p := newTestPolicy(t, defaultName, 2)
	p.IsolateBy = "{tenant}"
	p.state.owners.set(tokenizer.ResponseKey(p.state.secret, "", "resp_1"), "r1:1")
	p.route(chatOf("the same"))
	for name, test := range map[string]struct {
		query, body string
		check       func(Explanation) bool
	}{
		"text completion": {"?path=/v1/completions", `{"prompt":"a","max_tokens":9}`, func(e Explanation) bool {
			return e.Understood.API == "completions" && e.Understood.MaxTokens == 9
		}},
		"not JSON": {"", "--x", func(e Explanation) bool {
			return e.Understood.Unread == "not_json" && e.Understood.PromptTokens == 0 && len(e.Candidates) == 2
		}},
		"nothing": {"", "", func(e Explanation) bool { return e.Understood.Unread == "no_body" }},
		"stored response": {"?path=/v1/responses", `{"input":"a","previous_response_id":"resp_1"}`, func(e Explanation) bool {
			return e.Owner == "r1:1"
		}},
		"other tenant": {"?tenant=t", chatOf("the same"), func(e Explanation) bool {
			return e.Candidates[0].Matched == 0 && e.Candidates[1].Matched == 0
		}},
		"too long": {"", chatOf(strings.Repeat("long ", 1000)), func(e Explanation) bool { return e.Understood.Truncated }},
	} {
		if got := explain(t, test.query, test.body); !test.check(got) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestForgettingEmptiesTheIndex(t *testing.T) {
	p, other := newTestPolicy(t, defaultName, 2), newTestPolicy(t, "other", 3)
	other.route(chatOf("other")).ended(time.Now())
	matched := func() int {
		p.route(chatOf("the same")).ended(time.Now())
		return explain(t, "", chatOf("the same")).Candidates[0].Matched
	}
	holder := p.route(chatOf("the same"))
	holder.ended(time.Now())
	for _, test := range []struct {
		query string
		want  int
	}{
		{"?state=default&replica=" + holder.booking.Estimate.Replica, 1},
		{"?replica=" + holder.booking.Estimate.Replica, 2}, // both states know it
		{"?state=default", 2},
		{"", 5},
	} {
		if matched() == 0 {
			t.Errorf("before %q nothing is cached", test.query)
		}
		var answer forgetAnswer
		ask(t, "DELETE", "/cache_aware/residency"+test.query, "", &answer)
		if answer.Forgotten != test.want {
			t.Errorf("%q: %d replicas forgotten, want %d", test.query, answer.Forgotten, test.want)
		}
	}
	if got := explain(t, "", chatOf("the same")).Candidates; got[0].Matched+got[1].Matched != 0 {
		t.Errorf("after forgetting all: %+v", got)
	}
}

// A body that cannot be decoded must not be taken for the one read before it.
func TestUndecodableBodyLeavesNothingOfTheOneBefore(t *testing.T) {
	var prompt tokenizer.Prompt
	in := tokenizer.Input{Method: "POST", Path: "/v1/chat/completions", Body: []byte(chatOf("before"))}
	if err := parseBody(&in, "", defaultMaxPrompt, &prompt); err != nil || len(prompt.Blocks) == 0 {
		t.Fatalf("%v, %d blocks", err, len(prompt.Blocks))
	}
	in.Body = []byte("not compressed")
	err := parseBody(&in, "gzip", defaultMaxPrompt, &prompt)
	if reasonOf(err) != tokenizer.BadEncoding || len(prompt.Blocks) != 0 || prompt.Model != "" || prompt.API != tokenizer.Chat {
		t.Errorf("%v, prompt %+v", err, prompt)
	}
}
