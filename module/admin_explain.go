package module

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// Explanation is what would be expected of a request, had it come now.
type Explanation struct {
	State      string      `json:"state"`
	Understood Understood  `json:"understood"`
	Candidates []Candidate `json:"candidates"` // all known replicas, the cheapest first
	// Owner is the replica that keeps the stored response which the request
	// names: it goes there, whatever it costs.
	Owner string `json:"owner,omitempty"`
}

// Understood is what was read in a request: numbers and names, no text.
type Understood struct {
	// Unread says why no prompt could be read.
	Unread string `json:"unread,omitempty"`
	API    string `json:"api"`
	Work   string `json:"work"` // generate, embed, no_work or unknown
	Model  string `json:"model,omitempty"`
	// Adapter is the LoRA adapter, where it is named apart from the model.
	Adapter      string `json:"adapter,omitempty"`
	PromptTokens int    `json:"prompt_tokens"` // estimated
	Blocks       int    `json:"blocks"`        // of the prompt that can be looked up
	Hints        int    `json:"hints"`         // names of sessions and the like
	MaxTokens    int    `json:"max_tokens,omitempty"`
	Stream       bool   `json:"stream"`
	// Truncated says that only the beginning of the body was read.
	Truncated bool `json:"truncated"`
}

// defaultExplainPath is where most requests go.
const defaultExplainPath = "/v1/chat/completions"

// serveExplain estimates a request on all replicas that are known, and books
// nothing. The query may say which path it goes to, which state decides and
// which tenant it comes from, as isolate_by has it.
func serveExplain(r *http.Request) (any, error) {
	query := r.URL.Query()
	state, err := explainingState(query.Get("state"))
	if err != nil {
		return nil, err
	}
	body, truncated, err := readAtMost(r.Body, defaultMaxPrompt)
	if err != nil {
		return nil, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("reading body: %w", err)}
	}
	in := &tokenizer.Input{
		Method:      http.MethodPost,
		Path:        query.Get("path"),
		ContentType: r.Header.Get("Content-Type"),
		Body:        body,
		Truncated:   truncated,
		Secret:      state.secret,
		Tenant:      query.Get("tenant"),
	}
	if in.Path == "" {
		in.Path = defaultExplainPath
	}
	return state.explain(in, codings(r.Header)), nil
}

// explainingState returns the state of a name, the default one without.
func explainingState(name string) (namedState, error) {
	if name == "" {
		name = defaultName
	}
	chosen, err := chosenStates(name)
	if err != nil {
		return namedState{}, err
	}
	return chosen[0], nil
}

func readAtMost(body io.Reader, limit int64) (read []byte, truncated bool, err error) {
	read, err = io.ReadAll(io.LimitReader(body, limit+1))
	if int64(len(read)) > limit {
		return read[:limit], true, err
	}
	return read, false, err
}

func (s namedState) explain(in *tokenizer.Input, codings string) Explanation {
	prompt := prompts.Get().(*tokenizer.Prompt)
	defer prompts.Put(prompt)
	unread := parseBody(in, codings, defaultMaxPrompt, prompt)
	request := s.requestOf(in.Method, prompt)
	request.Hints = prompt.Hints
	explanation := Explanation{
		State: s.name,
		Understood: Understood{
			Unread:       string(reasonOf(unread)),
			API:          prompt.API.String(),
			Work:         prompt.Kind.String(),
			Model:        prompt.Model,
			Adapter:      prompt.Adapter,
			PromptTokens: request.Tokens + request.Extra,
			Blocks:       len(prompt.Blocks),
			Hints:        len(prompt.Hints),
			MaxTokens:    prompt.MaxTokens,
			Stream:       prompt.Stream,
			Truncated:    prompt.Truncated,
		},
		Candidates: candidatesOf(s.fleet.Explain(time.Now(), &request, nil)),
	}
	if prompt.HasResponseID {
		explanation.Owner, _ = s.owners.get(prompt.ResponseID)
	}
	return explanation
}
