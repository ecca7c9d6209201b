// Package load sends a workload to a server that speaks OpenAI's chat API and
// measures what its clients see.
package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// Client runs workloads against one server.
type Client struct {
	// URL is the server's base URL, without /v1.
	URL string
	// Model is the model to ask for; the server's own if empty.
	Model string
	// ReplicaHeader is the response header that names the replica, if any.
	ReplicaHeader string
	// Limit is how long new requests are begun; 0 means to the workload's end.
	Limit time.Duration
	// Progress, if set, is told of every finished request, from any goroutine.
	Progress func(done int)
	// HTTP is the client to use. Default: one of its own for each run.
	HTTP *http.Client
}

// Result is what became of one request.
type Result struct {
	Session, Turn int
	Begin         time.Time
	// TTFT is the time to the first piece of text, Total that to the end.
	TTFT, Total time.Duration
	// Replica is what the response header says.
	Replica string
	// PromptTokens, CachedTokens and OutputTokens are the usage.
	PromptTokens, CachedTokens, OutputTokens int
	// Err is nil if the answer came to its end.
	Err error
}

// Run has the workload's users go through its sessions and returns the results of
// all requests sent, session by session. A session ends with its first error. If
// ctx is cancelled, requests on their way fail and no more are sent.
func (c Client) Run(ctx context.Context, w *workload.Workload) []Result {
	begin := ctx // as long as requests may begin
	if c.Limit > 0 {
		var cancel context.CancelFunc
		begin, cancel = context.WithTimeout(ctx, c.Limit)
		defer cancel()
	}
	if c.HTTP == nil {
		transport := &http.Transport{MaxIdleConnsPerHost: w.Users}
		defer transport.CloseIdleConnections()
		c.HTTP = &http.Client{Transport: transport}
	}
	bySession := make([][]Result, len(w.Sessions))
	var next, done atomic.Int64
	var users sync.WaitGroup
	for range max(1, w.Users) {
		users.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(w.Sessions) || begin.Err() != nil {
					return
				}
				bySession[i] = c.session(ctx, begin, i, &w.Sessions[i], &done)
			}
		})
	}
	users.Wait()
	var all []Result
	for _, results := range bySession {
		all = append(all, results...)
	}
	return all
}

// session runs one conversation.
func (c Client) session(ctx, begin context.Context, index int, s *workload.Session, done *atomic.Int64) []Result {
	var results []Result
	dialogue := workload.NewDialogue(s, c.Model)
	for i, turn := range s.Turns {
		select {
		case <-time.After(turn.Think):
		case <-begin.Done():
			return results
		}
		result := Result{Session: index, Turn: i, Begin: time.Now()}
		text, err := c.ask(ctx, dialogue.Next(), &result)
		result.Total, result.Err = time.Since(result.Begin), err
		results = append(results, result)
		if c.Progress != nil {
			c.Progress(int(done.Add(1)))
		}
		if err != nil {
			return results
		}
		dialogue.Answer(text)
	}
	return results
}

// ask sends one body and reads the stream that answers it.
func (c Client) ask(ctx context.Context, body []byte, result *Result) (text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("making request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return "", fmt.Errorf("sending request: %w", err)
	}
	defer response.Body.Close()
	if c.ReplicaHeader != "" {
		result.Replica = response.Header.Get(c.ReplicaHeader)
	}
	if response.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)) // to use the connection again
		return "", fmt.Errorf("asking: status %d", response.StatusCode)
	}
	return readStream(response.Body, result)
}

// chunk is what the client reads of an event.
type chunk struct {
	Choices []struct {
		Delta struct{ Content string }
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		Details          struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// readStream reads server-sent events to the end and notes the time of the first
// piece of text and the usage.
func readStream(stream io.Reader, result *Result) (string, error) {
	var text bytes.Buffer
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			return text.String(), nil
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return "", fmt.Errorf("decoding event: %w", err)
		}
		for _, choice := range c.Choices {
			if choice.Delta.Content != "" && result.TTFT == 0 {
				result.TTFT = time.Since(result.Begin)
			}
			text.WriteString(choice.Delta.Content)
		}
		if u := c.Usage; u != nil {
			result.PromptTokens, result.OutputTokens = u.PromptTokens, u.CompletionTokens
			result.CachedTokens = u.Details.CachedTokens
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("reading stream: %w", err)
	}
	return "", errors.New("reading stream: ended before [DONE]")
}
