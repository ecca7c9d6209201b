package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// completionBody is the part of an OpenAI chat or text completion request that
// the simulation looks at.
type completionBody struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Tools               json.RawMessage `json:"tools"`
	Prompt              json.RawMessage `json:"prompt"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	N                   int             `json:"n"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	CacheSalt string `json:"cache_salt"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// limit is the number of output tokens that the client set, 0 if it set none.
func (b *completionBody) limit() (int, error) {
	limit := b.MaxCompletionTokens
	if limit == nil {
		limit = b.MaxTokens
	}
	if limit == nil {
		return 0, nil
	}
	if *limit < 1 {
		return 0, fmt.Errorf("max_tokens must be at least 1, got %d", *limit)
	}
	return *limit, nil
}

// endOfTurn is the token that ends a message, and an answer that ends by itself.
var endOfTurn = tokenOf("<|end|>")

// EndOfTurn is the token with which the chat template ends a message.
func EndOfTurn() uint64 { return endOfTurn }

// imageTokens is how many tokens an image, or any part that is not text, takes.
const imageTokens = 256

// TurnTokens is the number of tokens that the chat template puts around a
// message, and that an answer's role takes at the end of a prompt.
const (
	TurnTokens   = 2
	AnswerTokens = 1
)

// RoleToken is the token with which the chat template begins a message of that
// role.
func RoleToken(role string) uint64 { return tokenOf("<|" + role + "|>") }

// renderChat appends a chat's prompt to a chain: tools first, then the messages
// in order, then the beginning of the answer.
func renderChat(c *Chain, b *completionBody) error {
	if len(b.Messages) == 0 {
		return errors.New("messages must not be empty")
	}
	if tools := compact(b.Tools); len(tools) > 0 {
		c.Add(RoleToken("tools"))
		c.AddText(tools)
		c.Add(endOfTurn)
	}
	for i, m := range b.Messages {
		c.Add(RoleToken(m.Role))
		if m.ToolCallID != "" {
			c.AddText(m.ToolCallID)
			c.Add(endOfTurn)
		}
		if err := renderContent(c, m.Content); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		c.AddText(compact(m.ToolCalls))
		c.Add(endOfTurn)
	}
	c.Add(RoleToken("assistant"))
	return nil
}

// renderContent appends a message's content: a text, null, or a list of parts.
func renderContent(c *Chain, content json.RawMessage) error {
	if len(content) == 0 || string(content) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		c.AddText(text)
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(content, &parts); err != nil {
		return errors.New("content must be a text or a list of parts")
	}
	for _, raw := range parts {
		var part struct{ Type, Text string }
		if err := json.Unmarshal(raw, &part); err != nil {
			return errors.New("a content part must be an object")
		}
		if part.Type == "text" {
			c.AddText(part.Text)
			continue
		}
		whole := tokenOf(compact(raw))
		for i := range imageTokens {
			c.Add(mix(whole + uint64(i)))
		}
	}
	return nil
}

// renderPrompt appends a text completion's prompt: a text, a list of one text, or
// a list of token numbers.
func renderPrompt(c *Chain, prompt json.RawMessage) error {
	var text string
	if json.Unmarshal(prompt, &text) == nil {
		c.AddText(text)
		return nil
	}
	var texts []string
	if json.Unmarshal(prompt, &texts) == nil && len(texts) == 1 {
		c.AddText(texts[0])
		return nil
	}
	var tokens []uint64
	if json.Unmarshal(prompt, &tokens) == nil {
		for _, token := range tokens {
			c.Add(mix(token + 1))
		}
		return nil
	}
	return errors.New("prompt must be a text, a list of one text, or a list of token numbers")
}

// compact is JSON without white space, or nothing if there is none.
func compact(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "[]" {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}
