package module

import (
	"net/http"
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
	ratio := c.state.ratios.Of(prompt.Model)
	k.measured = measuredPrompt{ratios: &c.state.ratios, model: prompt.Model}
	if k.unread == nil && !prompt.Truncated && !prompt.HasResponseID {
		k.measured.text = prompt.Text()
	}
	k.request = selection.Request{
		Model:    prompt.Model,
		Work:     workOf(k.http, prompt.Kind),
		Blocks:   blocksOf(prompt.Blocks, ratio),
		Hints:    c.hints(k.http, tenant, prompt.Hints),
		Extra:    ratio.Tokens(prompt.Extra()),
		Output:   prompt.MaxTokens * max(1, prompt.Choices),
		Streamed: prompt.Stream,
		Capacity: c.CacheCapacity,
	}
	k.stored = c.reference(k.http, tenant, prompt)
	if last := len(k.request.Blocks) - 1; last >= 0 {
		k.request.Tokens = int(k.request.Blocks[last].Tokens)
	}
}

// parse reads as much of the body as it may into prompt.
func (c *CacheAware) parse(k *call, tenant string, prompt *tokenizer.Prompt) error {
	r := k.http
	k.body = openBody(r, c.MaxPrompt, c.state.bodies)
	body, truncated := k.body.Prefix(), !k.body.Complete()
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && len(body) > 0 {
		decoded, cut, err := tokenizer.Decode(encoding, body, int(c.MaxPrompt))
		if err != nil {
			return err
		}
		body, truncated = decoded, truncated || cut
	}
	return tokenizer.Parse(&tokenizer.Input{
		Method:      r.Method,
		Path:        r.URL.Path,
		ContentType: r.Header.Get("Content-Type"),
		Body:        body,
		Truncated:   truncated,
		Secret:      c.state.secret,
		Tenant:      tenant,
	}, prompt)
}

// workOf is what the engine will have to do. A request that could not be read
// may well be a generation, unless its method says otherwise.
func workOf(r *http.Request, kind tokenizer.Kind) selection.Work {
	switch {
	case kind == tokenizer.Generate, kind == tokenizer.Unknown && r.Method == http.MethodPost:
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
