package workload

import (
	"encoding/json"
	"fmt"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// Dialogue is a session as an HTTP client holds it: as growing chat bodies, with
// the answers that the server gave.
type Dialogue struct {
	session *Session
	body    chatBody
	turn    int
}

type chatBody struct {
	Model         string          `json:"model,omitempty"`
	Messages      []chatMessage   `json:"messages"`
	Tools         json.RawMessage `json:"tools,omitempty"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options,omitempty"`
	MaxTokens     int             `json:"max_tokens"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// NewDialogue begins a session with a model, or with the server's own if the name
// is empty. Its bodies ask for a stream with usage.
func NewDialogue(s *Session, model string) *Dialogue {
	d := &Dialogue{session: s, body: chatBody{
		Model: model, Stream: true, StreamOptions: &streamOptions{IncludeUsage: true},
	}}
	d.say(s.Shared)
	return d
}

// Next is the body of the next turn, or nil after the last.
func (d *Dialogue) Next() []byte {
	if d.turn == len(d.session.Turns) {
		return nil
	}
	turn := d.session.Turns[d.turn]
	d.turn++
	d.say(turn.Added)
	d.body.MaxTokens = turn.Answer.Tokens
	return mustMarshal(d.body)
}

// Answer takes in what the server answered to the last body.
func (d *Dialogue) Answer(text string) {
	d.body.Messages = append(d.body.Messages, chatMessage{Assistant, text})
}

func (d *Dialogue) say(segments []Segment) {
	for _, s := range segments {
		if s.Role == Tools {
			d.body.Tools = json.RawMessage(s.Text())
			continue
		}
		d.body.Messages = append(d.body.Messages, chatMessage{s.Role, s.Text()})
	}
}

// Text is the segment's text, which the simulated tokenizer cuts into Tokens
// tokens. Tool schemas are compact JSON; their segments are made by ToolSchemas.
func (s Segment) Text() string {
	if s.Role != Tools {
		return engine.Text(s.ID, s.Tokens)
	}
	return toolSchemas(s.ID)
}

// ToolSchemas makes the segment of a tool list. Its size is chosen by the number
// of tools, up to 255, and the tokens in the description of each.
func ToolSchemas(id uint64, tools, description int) Segment {
	id = id&^0xffffff | uint64(description&0xffff)<<8 | uint64(tools&0xff)
	return Segment{ID: id, Role: Tools, Tokens: engine.CountTokens(toolSchemas(id))}
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
}

// toolSchemas is the tool list whose size is written in the last bits of its id.
func toolSchemas(id uint64) string {
	list := make([]tool, id&0xff)
	for i := range list {
		list[i] = tool{"function", function{
			Name:        fmt.Sprintf("tool_%x_%d", id>>24, i),
			Description: engine.Text(id+uint64(i)<<24, int(id>>8&0xffff)),
			Parameters: map[string]any{
				"type":       "object",
				"properties": map[string]any{"path": map[string]string{"type": "string"}},
				"required":   []string{"path"},
			},
		}}
	}
	return string(mustMarshal(list))
}

func mustMarshal(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // our own types always marshal
	}
	return data
}
