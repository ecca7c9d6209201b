package clients

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// engine speaks enough of each API that the client libraries can be used in
// full. Its answers name the request's body by its hash, so that what arrived
// shows in what the client gets. It keeps responses to itself.
type engine struct {
	mu   sync.Mutex
	kept map[string]string
}

func startEngine(t *testing.T) string {
	t.Helper()
	e := &engine{kept: make(map[string]string)}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*exchange){
		"POST /v1/chat/completions":          (*exchange).chat,
		"POST /v1/completions":               (*exchange).completion,
		"POST /v1/embeddings":                (*exchange).embeddings,
		"POST /v1/audio/transcriptions":      (*exchange).transcription,
		"GET /v1/models":                     (*exchange).models,
		"POST /v1/responses":                 (*exchange).respond,
		"/v1/responses/{id}":                 (*exchange).response,
		"POST /v1/responses/{id}/cancel":     (*exchange).response,
		"GET /v1/responses/{id}/input_items": (*exchange).items,
		"POST /v1/messages":                  (*exchange).message,
		"POST /v1/messages/count_tokens":     (*exchange).countTokens,
		"POST /api/chat":                     (*exchange).ollamaChat,
		"POST /api/generate":                 (*exchange).ollamaGenerate,
		"POST /api/embed":                    (*exchange).ollamaEmbed,
		"POST /api/pull":                     (*exchange).ollamaPull,
		"POST /api/blobs/{digest}":           (*exchange).ollamaBlob,
		"GET /api/tags":                      (*exchange).ollamaTags,
		"POST /api/show":                     (*exchange).ollamaShow,
		"GET /api/version":                   (*exchange).ollamaVersion,
		"HEAD /{$}":                          func(*exchange) {},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, answer) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// exchange is one request and its answer.
type exchange struct {
	*engine
	w    http.ResponseWriter
	r    *http.Request
	body struct {
		Model    string
		Stream   *bool
		Previous string `json:"previous_response_id"`
	}
	digest string // of the body
}

func (e *engine) serve(w http.ResponseWriter, r *http.Request, answer func(*exchange)) {
	x := &exchange{engine: e, w: w, r: r}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x.digest = fmt.Sprintf("%x", sha256.Sum256(raw))[:12]
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		x.digest = fmt.Sprintf("%d bytes of a form", len(raw)) // whose boundary is random
	} else if len(raw) > 0 && raw[0] == '{' {
		_ = json.Unmarshal(raw, &x.body) // what it is not asked for may be missing
	}
	if x.body.Model == "absent" {
		x.fail(http.StatusNotFound, "model absent not found")
		return
	}
	answer(x)
}

type object = map[string]any

func (x *exchange) fail(status int, message string) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	_ = json.NewEncoder(x.w).Encode(object{"error": object{"message": message, "type": "not_found_error", "code": status}})
}

func (x *exchange) answer(value any) {
	x.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(x.w).Encode(value) // fails only if the client has left
}

// streams tells whether the answer is to be streamed, usually being what the
// API does where the request does not say.
func (x *exchange) streams(usually bool) bool {
	if x.body.Stream == nil {
		return usually
	}
	return *x.body.Stream
}

// events streams values as server-sent events, named by their type if they have one.
func (x *exchange) events(values ...object) {
	x.w.Header().Set("Content-Type", "text/event-stream")
	for _, value := range values {
		if name, ok := value["type"].(string); ok {
			fmt.Fprintf(x.w, "event: %s\n", name)
		}
		text, _ := json.Marshal(value) // of maps and strings
		fmt.Fprintf(x.w, "data: %s\n\n", text)
		x.w.(http.Flusher).Flush()
	}
}

// lines streams values as Ollama does.
func (x *exchange) lines(values ...object) {
	x.w.Header().Set("Content-Type", "application/x-ndjson")
	for _, value := range values {
		_ = json.NewEncoder(x.w).Encode(value)
		x.w.(http.Flusher).Flush()
	}
}
