package module

import (
	"net/http"
	"strings"
	"sync"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// prompts holds parsed prompts for reuse; what outlives the parse is copied.
var prompts = sync.Pool{New: func() any { return new(tokenizer.Prompt) }}

// read finds out what a call asks for. Whatever cannot be read is routed by
// load alone.
func (c *CacheAware) read(k *call) {
	prompt := prompts.Get().(*tokenizer.Prompt)
	defer prompts.Put(prompt)
	tenant := c.tenant(k.http)
	k.unread = c.parse(k, tenant, prompt)
	countUnread(k.unread)
	k.measured = measuredPrompt{ratios: &c.state.ratios, model: prompt.Model}
	if k.unread == nil && !prompt.Truncated && !prompt.HasResponseID {
		k.measured.text = prompt.Text()
	}
	k.request = c.state.requestOf(k.http.Method, prompt)
	k.request.Hints = c.hints(k.http, tenant, prompt.Hints)
	k.request.Capacity = c.CacheCapacity
	k.stored = c.reference(k.http, tenant, prompt)
}

// requestOf is a prompt as the decision sees it.
func (s *state) requestOf(method string, prompt *tokenizer.Prompt) selection.Request {
	ratio := s.ratios.Of(prompt.Model)
	request := selection.Request{
		Model:    prompt.Model,
		Work:     workOf(method, prompt.Kind),
		Blocks:   blocksOf(prompt.Blocks, ratio),
		Extra:    ratio.Tokens(prompt.Extra()),
		Output:   prompt.MaxTokens * max(1, prompt.Choices),
		Streamed: prompt.Stream,
	}
	if last := len(request.Blocks) - 1; last >= 0 {
		request.Tokens = int(request.Blocks[last].Tokens)
	}
	return request
}

// parse reads as much of the body as it may into prompt.
func (c *CacheAware) parse(k *call, tenant string, prompt *tokenizer.Prompt) error {
	r := k.http
	k.body = openBody(r, c.MaxPrompt, c.state.bodies)
	return parseBody(&tokenizer.Input{
		Method:      r.Method,
		Path:        r.URL.Path,
		ContentType: r.Header.Get("Content-Type"),
		Body:        k.body.Prefix(),
		Truncated:   !k.body.Complete(),
		Secret:      c.state.secret,
		Tenant:      tenant,
	}, codings(r.Header), c.MaxPrompt, prompt)
}

// codings are the content codings of a body, in the order they were applied.
func codings(header http.Header) string {
	return strings.Join(header["Content-Encoding"], ",")
}

// parseBody undoes the content codings of in's body, up to so many bytes, and
// reads it into prompt. What the path alone tells is read of a body that cannot
// be decoded, too.
func parseBody(in *tokenizer.Input, codings string, limit int64, prompt *tokenizer.Prompt) error {
	if codings != "" && len(in.Body) > 0 {
		decoded, cut, err := tokenizer.Decode(codings, in.Body, int(limit))
		if err != nil {
			in.Body = nil
			_ = tokenizer.Parse(in, prompt) // there is no body
			return err
		}
		in.Body, in.Truncated = decoded, in.Truncated || cut
	}
	return tokenizer.Parse(in, prompt)
}

// workOf is what the engine will have to do. A request that could not be read
// may well be a generation, unless its method says otherwise.
func workOf(method string, kind tokenizer.Kind) selection.Work {
	switch {
	case kind == tokenizer.Generate, kind == tokenizer.Unknown && method == http.MethodPost:
		return selection.Generate
	case kind == tokenizer.Embed:
		return selection.Prefill
	default:
		return selection.Light
	}
}

// blocksOf turns text into tokens.
func blocksOf(blocks []tokenizer.Block, ratio tokenizer.Ratio) []selection.Block {
	converted := make([]selection.Block, len(blocks))
	for i := range blocks {
		b := &blocks[i]
		converted[i] = selection.Block{
			Key:    b.Key,
			Tokens: uint32(ratio.Tokens(b.Text())), //nolint:gosec // bounded by the body's size
			Reply:  b.Reply,
		}
	}
	return converted
}

// measuredPrompt is the text of a prompt, whose length in tokens its answer may tell.
type measuredPrompt struct {
	ratios *tokenizer.Ratios
	model  string
	text   tokenizer.Text // empty if it is not the whole prompt
}

func (p *measuredPrompt) learn(tokens int) {
	if p.ratios != nil && tokens > 0 {
		p.ratios.Learn(p.model, p.text, tokens)
	}
}
