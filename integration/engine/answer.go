package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"
)

// answer is one completion on its way to the client.
type answer struct {
	server *Server
	life   *life
	chat   bool
	body   completionBody
	flight *flight

	id      string
	created int64
	text    string
	ends    []int  // where each token of the text ends
	reason  string // why it ends
}

// typicalOutput is the median length, in tokens, of answers that end by themselves.
const typicalOutput = 128

// compose decides what the answer to a prompt will be, appends its tokens to the
// prompt's and returns how many they are. With max_tokens it has that many, else
// a number drawn from the prompt's hash, and ends with an end-of-turn token.
func (a *answer) compose(sequence *Chain) (output int, err error) {
	seed := sequence.state
	a.id, a.created = fmt.Sprintf("cmpl-%016x", seed), time.Now().Unix()
	if a.chat {
		a.id = "chat" + a.id
	}
	a.reason = "length"
	output, err = a.body.limit()
	if err != nil {
		return 0, err
	}
	spoken := output
	if output == 0 {
		a.reason = "stop"
		output = drawOutput(seed)
		output = max(1, min(output, a.server.options.Profile.MaxTokens()-sequence.Len()))
		spoken = output - 1
	}
	// An unlimited max_tokens is refused when submitted; nothing that long is composed.
	a.text, a.ends = compose(seed, min(spoken, a.server.options.Profile.MaxTokens()))
	sequence.AddText(a.text)
	if spoken < output {
		sequence.Add(endOfTurn)
	}
	return output, nil
}

// drawOutput draws a length between an eighth of the typical one and eight times
// as much, evenly on a logarithmic scale.
func drawOutput(seed uint64) int {
	uniform := float64(mix(seed+1)>>11) / (1 << 53)
	return int(math.Round(typicalOutput * math.Pow(8, 2*uniform-1)))
}

// words is the text of the tokens from the first up to but without the second.
func (a *answer) words(from, to int) string {
	end := func(tokens int) int {
		if tokens = min(tokens, len(a.ends)); tokens == 0 {
			return 0
		}
		return a.ends[tokens-1]
	}
	return a.text[end(from):end(to)]
}

// await waits until there are more tokens than seen, or the client has left. If
// the engine crashes it drops the connection.
func (a *answer) await(ctx context.Context, seen int) (generated int, ok bool) {
	for {
		if generated = a.flight.progress(); generated > seen {
			return generated, true
		}
		select {
		case <-a.flight.changed:
		case <-ctx.Done():
			return 0, false
		case <-a.life.runner.stopped:
			panic(http.ErrAbortHandler)
		}
	}
}

// usage is the accounting of tokens in an answer.
type usage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	Details          *usageDetails `json:"prompt_tokens_details"`
}

type usageDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// usage may be asked for once the first token is there.
func (a *answer) usage(generated int) *usage {
	r := a.flight.request
	u := &usage{PromptTokens: r.Prompt, CompletionTokens: generated, TotalTokens: r.Prompt + generated}
	if !a.server.options.HideCachedTokens {
		u.Details = &usageDetails{r.Cached}
	}
	return u
}

type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message,omitempty"`
	Delta        *message `json:"delta,omitempty"`
	Text         *string  `json:"text,omitempty"`
	FinishReason *string  `json:"finish_reason"`
}

type message struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

func (a *answer) envelope(object string) completion {
	model := a.body.Model
	if model == "" {
		model = a.server.options.Models[0]
	}
	return completion{ID: a.id, Object: object, Created: a.created, Model: model, Choices: []choice{}}
}

// whole sends the answer in one piece.
func (a *answer) whole(ctx context.Context, w http.ResponseWriter) {
	output := a.flight.request.Output
	if _, ok := a.await(ctx, output-1); !ok {
		return
	}
	c := a.envelope("text_completion")
	done := choice{FinishReason: &a.reason}
	if a.chat {
		c.Object = "chat.completion"
		done.Message = &message{Role: "assistant", Content: a.text}
	} else {
		done.Text = &a.text
	}
	c.Choices, c.Usage = []choice{done}, a.usage(output)
	writeJSON(w, http.StatusOK, c)
}

// stream sends the answer as server-sent events while it is generated.
func (a *answer) stream(ctx context.Context, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	output, sent := a.flight.request.Output, 0
	for sent < output {
		seen := sent
		if sent > 0 {
			seen = min(sent+a.server.options.StreamInterval, output) - 1
		}
		generated, ok := a.await(ctx, seen)
		if !ok {
			return
		}
		if sent == 0 && a.chat {
			a.event(w, choice{Delta: &message{Role: "assistant"}})
		}
		a.event(w, a.delta(sent, generated))
		sent = generated
		if sent < output && out.Flush() != nil {
			return
		}
	}
	if a.body.StreamOptions.IncludeUsage {
		c := a.envelope(a.chunkObject())
		c.Usage = a.usage(output)
		writeEvent(w, c)
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// delta is the part of the answer between two numbers of tokens.
func (a *answer) delta(from, to int) choice {
	var c choice
	if text := a.words(from, to); a.chat {
		c.Delta = &message{Content: text}
	} else {
		c.Text = &text
	}
	if to == a.flight.request.Output {
		c.FinishReason = &a.reason
	}
	return c
}

func (a *answer) chunkObject() string {
	if a.chat {
		return "chat.completion.chunk"
	}
	return "text_completion"
}

func (a *answer) event(w http.ResponseWriter, c choice) {
	chunk := a.envelope(a.chunkObject())
	chunk.Choices = []choice{c}
	writeEvent(w, chunk)
}

func writeEvent(w http.ResponseWriter, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // our own types always marshal
	}
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data) // fails only if the client has left
}
