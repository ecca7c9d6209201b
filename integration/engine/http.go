package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

func (s *Server) handler(l *life) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(l, w, r, true) })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(l, w, r, false) })
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { s.metrics(l, w) })
	mux.HandleFunc("POST /reset_prefix_cache", l.resetPrefixCache)
	return mux
}

// apiError is an error that the client is told, in vLLM's form.
type apiError struct {
	status        int
	kind, message string
}

func (e *apiError) Error() string { return e.message }

func badRequest(err error) *apiError {
	return &apiError{http.StatusBadRequest, "BadRequestError", err.Error()}
}

func (e *apiError) write(w http.ResponseWriter) {
	writeJSON(w, e.status, map[string]any{"error": map[string]any{
		"message": e.message, "type": e.kind, "param": nil, "code": e.status,
	}})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // fails only if the client has left
}

// complete serves one completion from its body to the last token.
func (s *Server) complete(l *life, w http.ResponseWriter, r *http.Request, chat bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		badRequest(fmt.Errorf("reading body: %w", err)).write(w)
		return
	}
	s.record(r, body)
	if status := int(s.failure.Load()); status != 0 {
		(&apiError{status, "SimulatedFailure", http.StatusText(status)}).write(w)
		return
	}
	a, err := s.accept(l, body, chat)
	if err != nil {
		var known *apiError
		if !errors.As(err, &known) {
			known = badRequest(err)
		}
		known.write(w)
		return
	}
	defer l.runner.cancel(a.flight)
	if a.body.Stream {
		a.stream(r.Context(), w)
	} else {
		a.whole(r.Context(), w)
	}
}

func (s *Server) record(r *http.Request, body []byte) {
	if !s.options.Record {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, RecordedRequest{r.Method, r.URL.Path, r.Header.Clone(), body})
}

// accept turns a body into a request, composes its answer and submits it.
func (s *Server) accept(l *life, raw []byte, chat bool) (*answer, error) {
	a := &answer{server: s, life: l, chat: chat}
	if err := json.Unmarshal(raw, &a.body); err != nil {
		return nil, fmt.Errorf("decoding body: %w", err)
	}
	root, err := s.root(&a.body)
	if err != nil {
		return nil, err
	}
	if a.body.N > 1 {
		return nil, fmt.Errorf("n must be 1, got %d", a.body.N)
	}
	sequence := NewChain(root, s.options.Profile.BlockSize)
	if chat {
		err = renderChat(sequence, &a.body)
	} else {
		err = renderPrompt(sequence, a.body.Prompt)
	}
	if err != nil {
		return nil, err
	}
	request := &Request{Prompt: sequence.Len()}
	if request.Output, err = a.compose(sequence); err != nil {
		return nil, err
	}
	request.Keys = sequence.Keys()
	a.flight, err = l.runner.submit(request)
	return a, err
}

// root is where the chain of a request begins: with its model and salt.
func (s *Server) root(b *completionBody) (uint64, error) {
	adapter := slices.Index(s.options.Models, b.Model)
	if b.Model == "" {
		adapter = 0
	}
	if adapter < 0 {
		return 0, &apiError{http.StatusNotFound, "NotFoundError", fmt.Sprintf("The model `%s` does not exist.", b.Model)}
	}
	return mix(uint64(adapter)) ^ tokenOf(b.CacheSalt), nil
}

// resetPrefixCache forgets all cached blocks unless some are in use, as vLLM does.
func (l *life) resetPrefixCache(w http.ResponseWriter, _ *http.Request) {
	success := false
	_ = l.runner.do(func(e *Engine, now time.Duration) error {
		e.run(now)
		if success = e.cache.used() == 0; success {
			e.ClearCache(now)
		}
		return nil
	})
	writeJSON(w, http.StatusOK, map[string]bool{"success": success})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID          string  `json:"id"`
		Object      string  `json:"object"`
		OwnedBy     string  `json:"owned_by"`
		Root        string  `json:"root"`
		Parent      *string `json:"parent"`
		MaxModelLen *int    `json:"max_model_len"`
	}
	var all []model
	for i, name := range s.options.Models {
		m := model{ID: name, Object: "model", OwnedBy: "vllm", Root: name}
		if i == 0 {
			most := s.options.Profile.MaxTokens()
			m.MaxModelLen = &most
		} else {
			m.Parent = &s.options.Models[0]
		}
		all = append(all, m)
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
}
