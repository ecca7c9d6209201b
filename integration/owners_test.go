package integration

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// responder is an engine that keeps responses to itself, as vLLM does. It
// streams where asked to, and waits in the middle until it may go on.
type responder struct {
	*httptest.Server
	goOn chan struct{}

	mu   sync.Mutex
	kept map[string]bool
}

func startResponder(t *testing.T, number int) *responder {
	e := &responder{kept: make(map[string]bool), goOn: make(chan struct{})}
	mux := http.NewServeMux()
	created := func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Previous     string `json:"previous_response_id"`
			Conversation string
			Stream       bool
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		e.mu.Lock()
		missing := body.Previous != "" && !e.kept[body.Previous] || body.Conversation != "" && !e.kept[body.Conversation]
		id := fmt.Sprintf("%s_%d_%d", strings.TrimPrefix(r.URL.Path, "/v1/"), number, len(e.kept))
		e.kept[id] = !missing
		e.mu.Unlock()
		switch {
		case missing:
			http.Error(w, "unknown", http.StatusNotFound)
		case body.Stream:
			e.stream(w, id)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":%q,"object":"response","output":[{"id":"msg_1","type":"message"}]}`, id)
		}
	}
	kept := func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.kept[r.PathValue("id")] {
			http.Error(w, "unknown", http.StatusNotFound)
		}
	}
	mux.HandleFunc("POST /v1/responses", created)
	mux.HandleFunc("POST /v1/conversations", created)
	for _, pattern := range []string{"/v1/responses/{id}", "/v1/responses/{id}/{rest...}", "/v1/conversations/{id}", "/v1/conversations/{id}/{rest...}"} {
		mux.HandleFunc(pattern, kept)
	}
	e.Server = httptest.NewServer(compressing(mux))
	t.Cleanup(e.Close)
	return e
}

// compressing compresses the answers to requests with X-Compress.
func compressing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Compress") == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		next.ServeHTTP(compressedWriter{w, compressed}, r)
		_ = compressed.Close()
	})
}

// compressedWriter compresses what is written, piece by piece.
type compressedWriter struct {
	http.ResponseWriter
	body *gzip.Writer
}

func (w compressedWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

func (w compressedWriter) Flush() {
	_ = w.body.Flush()
	w.ResponseWriter.(http.Flusher).Flush()
}

func (e *responder) stream(w http.ResponseWriter, id string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":%q}}\n\n", id)
	w.(http.Flusher).Flush()
	<-e.goOn
	fmt.Fprintf(w, "data: {\"type\":\"response.completed\",\"response\":{\"id\":%q}}\n\n", id)
}

func newResponderRig(t *testing.T, options string) (*rig, []*responder) {
	t.Helper()
	r := &rig{t: t, options: options}
	var all []*responder
	for i := range 4 {
		e := startResponder(t, i)
		all = append(all, e)
		r.others = append(r.others, e.Listener.Addr().String())
	}
	r.start()
	return r, all
}

// create asks for a response or conversation and returns its id.
func (r *rig) create(path, body string, header ...string) (id string, status int) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.address+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response, err := r.do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var said struct{ ID string }
	_ = json.NewDecoder(response.Body).Decode(&said) // not JSON if it is an error
	_, _ = io.Copy(io.Discard, response.Body)
	return said.ID, response.StatusCode
}

const responsesPath = "/v1/responses"

func TestStoredResponsesAreSoughtWhereTheyAre(t *testing.T) {
	for name, options := range map[string]string{"default": "", "fallback": "fallback round_robin", "tenants": "isolate_by {http.request.header.X-None}"} {
		for _, header := range []string{"Accept: */*", "X-Compress: 1"} {
			t.Run(name+"/"+header, func(t *testing.T) {
				r, _ := newResponderRig(t, options)
				for i := range 12 {
					id, status := r.create(responsesPath, `{"model":"m","input":"hello"}`, header)
					for turn := range 4 {
						if status != 200 {
							t.Fatalf("conversation %d, turn %d: status %d", i, turn, status)
						}
						r.assertKept(id)
						id, status = r.create(responsesPath, fmt.Sprintf(`{"model":"m","input":"go on","previous_response_id":%q}`, id), header)
					}
				}
			})
		}
	}
}

// assertKept asks for a response in all ways.
func (r *rig) assertKept(id string) {
	r.t.Helper()
	for _, c := range [][2]string{{"GET", ""}, {"GET", "/input_items?limit=3"}, {"POST", "/cancel"}, {"DELETE", ""}} {
		if a := r.request(c[0], "/v1/responses/"+id+c[1], ""); a.Status != 200 || a.Reason != "owner" {
			r.t.Errorf("%s of %s: status %d from %s for %s", c[0], id+c[1], a.Status, a.Replica, a.Reason)
		}
	}
}

func TestConversationsAreContinuedWhereTheyAre(t *testing.T) {
	r, _ := newResponderRig(t, "")
	for range 8 {
		id, _ := r.create("/v1/conversations", `{}`)
		if _, status := r.create(responsesPath, fmt.Sprintf(`{"model":"m","input":"hi","conversation":%q}`, id)); status != 200 {
			t.Errorf("conversation %s: status %d", id, status)
		}
		if a := r.request("POST", "/v1/conversations/"+id+"/items", `{"items":[]}`); a.Status != 200 {
			t.Errorf("items: status %d from %s for %s", a.Status, a.Replica, a.Reason)
		}
	}
}

func TestStreamedResponseCanBeCancelledMeanwhile(t *testing.T) {
	r, all := newResponderRig(t, "")
	for range 4 {
		response, err := client.Post("http://"+r.address+responsesPath, "application/json", strings.NewReader(`{"model":"m","input":"x","stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		event := make([]byte, 512)
		n, _ := io.ReadAtLeast(response.Body, event, 60)
		_, id, _ := strings.Cut(string(event[:n]), `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		if a := r.request("POST", responsesPath+"/"+id+"/cancel", ""); a.Status != 200 || a.Reason != "owner" {
			t.Errorf("cancelling %q: status %d from %s for %s", id, a.Status, a.Replica, a.Reason)
		}
		select { // whichever is streaming
		case all[0].goOn <- struct{}{}:
		case all[1].goOn <- struct{}{}:
		case all[2].goOn <- struct{}{}:
		case all[3].goOn <- struct{}{}:
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

func TestOwnerThatIsGoneIsReplaced(t *testing.T) {
	r, all := newResponderRig(t, "")
	r.handler = retries
	r.load()
	id, _ := r.create(responsesPath, `{"model":"m","input":"hello"}`)
	owner := r.request("GET", responsesPath+"/"+id, "").Replica
	for _, e := range all {
		if e.Listener.Addr().String() == owner {
			e.Close()
		}
	}
	// Another one is asked, and what it says is what the client gets.
	body := fmt.Sprintf(`{"model":"m","input":"go on","previous_response_id":%q}`, id)
	if a := r.request("POST", responsesPath, body); a.Status != 404 || a.Replica == owner || a.Reason == "owner" {
		t.Errorf("status %d from %s for %s", a.Status, a.Replica, a.Reason)
	}
}

func TestTenantsShareNoResponses(t *testing.T) {
	r, _ := newResponderRig(t, "isolate_by {http.request.header.Authorization}")
	id, _ := r.create(responsesPath, `{"model":"m","input":"hello"}`, "Authorization: Bearer a")
	for tenant, want := range map[string]string{"Bearer a": "owner", "Bearer b": "load", "": "load"} {
		if a := r.request("GET", responsesPath+"/"+id, "", "Authorization: "+tenant); a.Reason != want {
			t.Errorf("%q went to %s for %s, want %s", tenant, a.Replica, a.Reason, want)
		}
	}
}

func TestUnknownResponseIsRoutedAsUsual(t *testing.T) {
	r, _ := newResponderRig(t, "")
	if a := r.request("GET", responsesPath+"/resp_unknown", ""); a.Status != 404 || a.Reason != "load" {
		t.Errorf("status %d for %s", a.Status, a.Reason)
	}
}
