// Package tokenizer reads what a router must know of a request to an inference
// engine: which model and adapter it is for, what kind of work it asks for, and its
// prompt, as a chain of block keys. Two requests share the first n keys when an
// engine would find the first n blocks of one in the KV cache left by the other.
//
// It reads bodies that are cut short, lenient JSON and every API of the common
// engines, in memory bounded by construction. It keeps nothing of a body: only
// hashes, numbers and the model's and adapter's names leave it.
package tokenizer

import (
	"bytes"
	"strings"
)

// Input is what a router knows of a request before anything is answered.
type Input struct {
	Method, Path, ContentType string

	// Body holds the decoded bytes from the start of the body, see Decode. It must be
	// shorter than 4 GiB.
	Body []byte
	// Truncated says that the body goes on after Body.
	Truncated bool

	// Secret is the root of every chain and of every hint: a random number per
	// shared state, so that clients cannot aim for a key.
	Secret uint64
	// Tenant keeps prompts apart: requests of different tenants share no key.
	Tenant string
}

// Block is one link of a prompt's key chain.
type Block struct {
	// Key names the prompt from its beginning to the end of this block.
	Key uint64
	// Bytes counts the text bytes of the prompt up to and including this block.
	Bytes uint32
	// Further counts those of Bytes that are not the first of their character, about.
	Further uint32
	// Tokens counts what is not text up to and including this block: token ids, and
	// by convention images and the template's wrapping of messages. They come on top of Bytes.
	Tokens uint32
	// Reply marks a block that lies inside an assistant message: an earlier answer,
	// which a replica may hold although no request carried it as a prompt.
	Reply bool
}

// Text is what the chain up to and including b stands for.
func (b *Block) Text() Text {
	return Text{Bytes: int(b.Bytes), Further: int(b.Further), Tokens: int(b.Tokens)}
}

// Kind is the work that a request asks of an engine.
type Kind uint8

const (
	Unknown  Kind = iota // nothing could be read
	Generate             // prefill and decode
	Embed                // prefill only: embeddings, scores, classes
	NoWork               // no inference: counting tokens, rendering, retrieval; warms nothing
)

func (k Kind) String() string {
	return [...]string{"unknown", "generate", "embed", "no_work"}[k]
}

// Prompt is what Parse finds in a request. It is reused from request to request;
// its slices are valid until the next Parse into it.
type Prompt struct {
	API     API
	Kind    Kind
	Model   string
	Adapter string // LoRA adapter, where a request names one beside the model

	Stream    bool
	MaxTokens int // bound on generated tokens per choice, 0 when not given
	Choices   int // answers to generate from one prompt, at least 1
	// Truncated says that the chain covers only the beginning of the prompt. Fields that
	// come later in the body are unknown then, which may be the model's name.
	Truncated bool

	// Blocks is the key chain, root first.
	Blocks []Block
	// ExtraBytes, ExtraFurther and ExtraTokens are prompt beyond the chain that no cache
	// covers: the further prompts of a batch, and a tail too short to get a key.
	ExtraBytes, ExtraFurther, ExtraTokens int

	// Hints are exact-match keys for residency that an earlier request with the
	// same id left behind, see Hint.
	Hints []uint64
	// ResponseID is the ResponseKey of the response or conversation that the request
	// continues, retrieves or cancels; it means something only if HasResponseID.
	ResponseID    uint64
	HasResponseID bool
}

// Extra is what the prompt consists of beyond the chain.
func (p *Prompt) Extra() Text {
	return Text{Bytes: p.ExtraBytes, Further: p.ExtraFurther, Tokens: p.ExtraTokens}
}

// Text is what the prompt consists of, as far as it could be read.
func (p *Prompt) Text() Text {
	text := p.Extra()
	if n := len(p.Blocks); n > 0 {
		text.add(p.Blocks[n-1].Text(), 1)
	}
	return text
}

func (p *Prompt) addExtra(text Text, times int) {
	extra := p.Extra()
	extra.add(text, times)
	p.ExtraBytes, p.ExtraFurther, p.ExtraTokens = extra.Bytes, extra.Further, extra.Tokens
}

func (p *Prompt) reset() {
	*p = Prompt{Model: p.Model, Adapter: p.Adapter, Blocks: p.Blocks[:0], Hints: p.Hints[:0], Choices: 1}
}

// Parse fills p from a request, reusing p's memory. It reads the body once and is
// safe for concurrent use with distinct prompts. The error is always a Reason; what
// could be read before it (model, API) stays in p, with no blocks.
func Parse(in *Input, p *Prompt) error {
	p.reset()
	rt := matchPath(in.Path)
	p.API, p.Kind = rt.api, rt.kind
	if rt.responseID != "" {
		p.ResponseID, p.HasResponseID = ResponseKey(in.Secret, in.Tenant, rt.responseID), true
		p.Model, p.Adapter = "", ""
		return nil
	}
	err := checkBody(in)
	if err == nil {
		r := newReader(in, p)
		err = r.read(rt)
		r.release()
	} else {
		p.Model, p.Adapter = rt.model, ""
	}
	if err != nil {
		p.Blocks, p.Kind = p.Blocks[:0], Unknown
	}
	return err
}

// checkBody turns away what cannot carry a prompt before any work is done on it. A
// content type of text proves nothing: clients send JSON under any name.
func checkBody(in *Input) error {
	switch in.Method {
	case "GET", "HEAD", "OPTIONS", "CONNECT", "TRACE":
		return NoBody
	}
	if len(in.ContentType) >= 10 && strings.EqualFold(in.ContentType[:10], "multipart/") {
		return NotJSON
	}
	body := bytes.TrimLeft(bytes.TrimPrefix(in.Body, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(body) == 0:
		return NoBody
	case body[0] != '{':
		return NotJSON
	}
	return nil
}
