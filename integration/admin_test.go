package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/internal/loopback"
	"github.com/seed5db0839e/caddy-cache-aware/module"
)

// newAdminRig is a rig with an admin endpoint.
func newAdminRig(t *testing.T, replicas int, options string) *rig {
	t.Helper()
	return newAdminRigOf(t, replicas, engine.Options{}, options)
}

// newAdminRigOf is newAdminRig with engines of a kind.
func newAdminRigOf(t *testing.T, replicas int, o engine.Options, options string) *rig {
	t.Helper()
	admin, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, admin: admin, options: options}
	r.startEngines(replicas, o)
	r.start()
	return r
}

// ask sends a request to the admin endpoint and returns status and answer.
func (r *rig) ask(method, target, body string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.admin+target, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	response, err := r.do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// askFor is ask for a JSON answer.
func (r *rig) askFor(method, target, body string, into any) {
	r.t.Helper()
	status, answer := r.ask(method, target, body)
	if status != http.StatusOK {
		r.t.Fatalf("%s %s: status %d, %s", method, target, status, answer)
	}
	if err := json.Unmarshal([]byte(answer), into); err != nil {
		r.t.Fatalf("%s %s: %v in %s", method, target, err, answer)
	}
}

func (r *rig) decisions() []module.Decision {
	r.t.Helper()
	var answer struct{ Decisions []module.Decision }
	r.askFor("GET", "/cache_aware/decisions", "", &answer)
	return answer.Decisions
}

func TestAdminTellsHowARequestWent(t *testing.T) {
	r := newAdminRig(t, 2, "")
	c := chat{System: text(1, 4000), User: "one", MaxTokens: 8}
	first := r.send(t.Context(), c)
	again := r.send(t.Context(), c)

	list := r.decisions()
	if len(list) != 2 {
		t.Fatalf("decisions: %+v", list)
	}
	d := list[0]
	if d.State != "default" || d.Model != "simulated" || d.Reason != "prefix" || d.Replica != first.Replica || d.Candidates != 2 {
		t.Errorf("decision: %+v", d)
	}
	if d.Considered[0].Matched != again.Matched || len(d.Considered) != 2 {
		t.Errorf("considered: %+v, want %d tokens matched", d.Considered, again.Matched)
	}
	o := d.Outcome
	if o.Result != "answered" || o.TTFT == nil || *o.TTFT <= 0 || o.Confirmed == nil || *o.Confirmed != again.Cached || *o.OutputTokens != 8 {
		t.Errorf("outcome: %+v, want %d tokens confirmed", o, again.Cached)
	}

	r.load() // a reload forgets nothing
	if n := len(r.decisions()); n != 2 {
		t.Errorf("%d decisions after a reload", n)
	}
	var status struct{ States []module.Status }
	r.askFor("GET", "/cache_aware/", "", &status)
	s := status.States
	if len(s) != 1 || s[0].Policies != 1 || len(s[0].Replicas) != 2 || s[0].Index.Entries == 0 {
		t.Errorf("status: %+v", s)
	}
}

func TestAdminExplainsAndForgets(t *testing.T) {
	r := newAdminRig(t, 2, "")
	c := chat{System: text(1, 4000), User: "one", MaxTokens: 8}
	first := r.send(t.Context(), c)
	var e module.Explanation
	r.askFor("POST", "/cache_aware/explain", string(c.body()), &e)
	if best := e.Candidates[0]; best.Replica != first.Replica || best.Matched < 3500 || e.Understood.API != "chat" {
		t.Errorf("explanation: %+v", e)
	}
	var forgotten struct{ Forgotten int }
	r.askFor("DELETE", "/cache_aware/residency?replica="+first.Replica, "", &forgotten)
	if forgotten.Forgotten != 1 {
		t.Errorf("forgotten: %+v", forgotten)
	}
	if again := r.send(t.Context(), c); again.Reason != "cold" || again.Matched != 0 {
		t.Errorf("after forgetting: %+v", again)
	}
}

func TestAdminErrorsAreCaddys(t *testing.T) {
	r := newAdminRig(t, 1, "")
	for target, want := range map[string]int{
		"GET /cache_aware/none":                     404,
		"PUT /cache_aware/":                         405,
		"GET /cache_aware/explain":                  405,
		"POST /cache_aware/explain?state=none":      404,
		"DELETE /cache_aware/residency?replica=x:1": 404,
	} {
		method, path, _ := strings.Cut(target, " ")
		status, answer := r.ask(method, path, "")
		var said struct{ Error string }
		if err := json.Unmarshal([]byte(answer), &said); err != nil || status != want || said.Error == "" {
			t.Errorf("%s: status %d, %s, want %d", target, status, answer, want)
		}
	}
}

// TestAdminAndMetricsTellNoSecrets sends texts that must appear nowhere.
func TestAdminAndMetricsTellNoSecrets(t *testing.T) {
	r := newAdminRig(t, 2, "session_header X-Session\nisolate_by {http.request.header.X-Tenant}")
	const secret = "hush"
	body := fmt.Sprintf(`{"model":"simulated","user":%q,"prompt_cache_key":%q,"cache_salt":%q,"max_tokens":2,
		"messages":[{"role":"system","content":%q},{"role":"user","name":%q,"content":%q}]}`,
		secret, secret, secret, strings.Repeat(secret+" ", 2000), secret, secret)
	for _, sent := range []string{body, "--" + secret, `{"` + secret} {
		r.request("POST", chatPath, sent, "X-Session: "+secret, "X-Tenant: "+secret, "Authorization: Bearer "+secret, "Cookie: a="+secret)
	}
	r.request("GET", "/v1/responses/"+secret, "", "Accept: */*")
	for _, target := range []string{"GET /cache_aware/", "GET /cache_aware/decisions", "POST /cache_aware/explain?tenant=" + secret, "GET /metrics"} {
		method, path, _ := strings.Cut(target, " ")
		status, answer := r.ask(method, path, body)
		if status != http.StatusOK || strings.Contains(answer, secret) {
			t.Errorf("%s: status %d, %s", target, status, answer)
		}
	}
}

// TestAdminUnderLoadAndReloads asks everything while requests pass and the
// configuration is loaded again.
func TestAdminUnderLoadAndReloads(t *testing.T) {
	r := newAdminRig(t, 2, "")
	c := chat{System: text(1, 500), User: "one", MaxTokens: 4}
	chats := make([]chat, 40)
	for i := range chats {
		chats[i] = c
	}
	done := make(chan []answer)
	go func() { done <- r.sendAll(chats) }()
	targets := []string{"GET /cache_aware/", "GET /cache_aware/decisions", "POST /cache_aware/explain", "DELETE /cache_aware/residency", "GET /metrics"}
	for round := range 3 {
		for _, target := range targets {
			method, path, _ := strings.Cut(target, " ")
			if status, answer := r.ask(method, path, string(c.body())); status != http.StatusOK {
				t.Errorf("round %d, %s: status %d, %s", round, target, status, answer)
			}
		}
		r.load()
	}
	for _, a := range <-done {
		if a.Status != http.StatusOK || !a.Complete {
			t.Errorf("answer: %+v", a)
		}
	}
	for _, d := range r.decisions() {
		if d.Outcome.Result != "answered" {
			t.Errorf("decision: %+v", d)
		}
	}
}
