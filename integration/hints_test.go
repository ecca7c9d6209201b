package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// request sends a request with header lines and returns what came of it.
func (r *rig) request(method, path, body string, header ...string) answer {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.address+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response, err := r.do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		r.t.Fatal(err)
	}
	return answerOf(response)
}

const chatPath = "/v1/chat/completions"

func TestSessionHeaderStandsInForText(t *testing.T) {
	r := newRig(t, 4, engine.Options{}, "session_header X-Session X-Chat\nfallback first", "")
	for i := range 8 {
		session := fmt.Sprintf("X-Chat: s-%d", i)
		prompt := string(chat{System: text(i, 1000), User: "x", MaxTokens: 2, Silent: true}.body())
		first := r.request("POST", chatPath, prompt, session)
		if first.Status != 200 || first.Reason != "cold" {
			t.Fatalf("first answer: %+v", first)
		}
		for _, unreadable := range []string{"{", "--boundary", ""} {
			if a := r.request("POST", chatPath, unreadable, session); a.Replica != first.Replica || a.Reason != "hint" {
				t.Errorf("session %d went to %s for %s, want %s for hint", i, a.Replica, a.Reason, first.Replica)
			}
		}
		for _, other := range []string{session + "2", strings.ToUpper(session), fmt.Sprintf("X-Session: s-%d", i), "X-Chat: "} {
			if a := r.request("POST", chatPath, "{", other); a.Reason != "fallback" {
				t.Errorf("%q went to %s for %s", other, a.Replica, a.Reason)
			}
		}
	}
}

func TestHintsInBodies(t *testing.T) {
	for name, c := range map[string]struct{ path, id, prompt string }{
		"prompt_cache_key": {chatPath, `"prompt_cache_key":"k-%d"`, `"messages":[{"role":"user","content":"%s"}]`},
		"of a response":    {responsesPath, `"prompt_cache_key":"k-%d"`, `"input":"%s"`},
		"user_id":          {"/v1/messages", `"metadata":{"user_id":"k-%d"}`, `"messages":[{"role":"user","content":"%s"}]`},
		"session_params":   {"/generate", `"session_params":{"id":"k-%d"}`, `"text":"%s"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t}
			for range 4 {
				r.others = append(r.others, startSink(t).Listener.Addr().String())
			}
			r.start()
			ask := func(id int, prompt string) answer {
				return r.request("POST", c.path, fmt.Sprintf(`{"model":"m",`+c.id+prompt+`}`, id))
			}
			for i := range 8 {
				first := ask(i, ","+fmt.Sprintf(c.prompt, text(i, 1000)))
				if a := ask(i, ""); a.Replica != first.Replica || a.Reason != "hint" {
					t.Errorf("%d went to %s for %s, want %s for hint", i, a.Replica, a.Reason, first.Replica)
				}
				if a := ask(i*10+100, ""); a.Reason != "load" {
					t.Errorf("an unknown one went to %s for %s", a.Replica, a.Reason)
				}
			}
		})
	}
}

func TestTenantsShareNothing(t *testing.T) {
	r := newRig(t, 2, engine.Options{}, "session_header X-Session\nisolate_by {http.request.header.Authorization}", "")
	prompt := string(chat{System: text(1, 2000), User: "x", MaxTokens: 2, Silent: true}.body())
	const a, b, session = "Authorization: Bearer a", "Authorization: Bearer b", "X-Session: s"
	first := r.request("POST", chatPath, prompt, a, session)
	for name, test := range map[string]struct {
		body   string
		header []string
		want   string
	}{
		"own prompt":       {prompt, []string{a}, "prefix"},
		"own session":      {"{", []string{a, session}, "hint"},
		"another's prompt": {prompt, []string{b}, "cold"},
		"nobody's prompt":  {prompt, nil, "cold"},
		"another session":  {"{", []string{b, session}, "load"},
	} {
		got := r.request("POST", chatPath, test.body, test.header...)
		if own := test.want == "prefix" || test.want == "hint"; got.Reason != test.want || own && got.Replica != first.Replica {
			t.Errorf("%s: went to %s for %s, want %s", name, got.Replica, got.Reason, test.want)
		}
	}
}
