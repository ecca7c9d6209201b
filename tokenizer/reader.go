package tokenizer

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/zeebo/xxh3"
)

const (
	// maxName bounds the names of models and adapters that are kept.
	maxName = 256
	// Memory of a reader that a large body made grow beyond these is not kept.
	maxPooledNodes = 1 << 17
	maxPooledBytes = 128 << 10
)

// reader turns one request into a prompt. It lives in a pool for the sake of its memory.
type reader struct {
	document
	stream
	in      *Input
	p       *Prompt
	top     [numFields]value // fields of the top level
	options [len(optionFields)]value
	kept    int // blocks that belong to the chain, -1 while all do
	rootBuf []byte
}

var readers = sync.Pool{New: func() any { return new(reader) }}

func newReader(in *Input, p *Prompt) *reader {
	r := readers.Get().(*reader)
	r.in, r.p = in, p
	return r
}

// release lets go of everything that belongs to the caller.
func (r *reader) release() {
	r.in, r.p, r.body, r.blocks = nil, nil, nil, nil
	if cap(r.tape) > maxPooledNodes {
		r.tape = nil
	}
	if cap(r.unescape) > maxPooledBytes {
		r.unescape = nil
	}
	if cap(r.scratch) > maxPooledBytes {
		r.scratch = nil
	}
	readers.Put(r)
}

func (r *reader) read(rt route) error {
	cut, err := r.scan(r.in.Body, r.in.Truncated)
	if err != nil {
		r.p.Model, r.p.Adapter = rt.model, ""
		return Malformed
	}
	r.p.Truncated = cut
	r.dirty = bytes.IndexByte(r.in.Body, mark) >= 0
	r.collect()
	r.p.API = r.recognise(rt.api)
	a := &apis[r.p.API]
	if rt.kind == Unknown {
		r.p.Kind = a.kind
	}
	r.describe(rt)
	switch {
	case r.p.Kind == NoWork:
		return nil
	case rt.other:
		return NoPrompt
	}
	r.references()
	switch {
	case a.read == nil:
		return UnknownAPI
	case !cut && !r.hasAny(a.evidence):
		return NoPrompt
	}
	return r.readPrompt(a)
}

// readPrompt writes the stream in the order in which engines render it.
func (r *reader) readPrompt(a *api) error {
	r.start(r.rootKey(), r.p.Blocks)
	r.kept = -1
	r.templateOptions()
	a.read(r)
	r.endChain()
	r.p.Blocks = r.blocks[:r.kept]
	r.p.addExtra(r.written(r.buf), 1)
	if r.kept > 0 {
		r.p.addExtra(r.blocks[r.kept-1].Text(), -1)
	}
	if r.kept == 0 && !r.p.HasResponseID {
		return NoPrompt
	}
	return nil
}

// endChain ends the chain where it stands: what is written after it only counts as extra.
func (r *reader) endChain() {
	if r.kept < 0 {
		r.turnEnd()
		r.kept = len(r.blocks)
	}
}

// collect finds the fields of the top level, of duplicates the last.
func (r *reader) collect() {
	r.top = [numFields]value{}
	r.options = [len(optionFields)]value{}
	for key, val := range r.fields(root) {
		if f, ok := fieldNames[string(key)]; ok {
			r.top[f] = val
			continue
		}
		for i, name := range optionFields {
			if string(key) == name {
				r.options[i] = val
			}
		}
	}
	if effort := &r.options[optionEffort]; *effort == absent {
		*effort = r.get(r.either(fReasoning, fOutputConfig), "effort")
	}
}

// describe fills in what is common to all APIs.
func (r *reader) describe(rt route) {
	r.name(&r.p.Model, r.top[fModel])
	if r.p.Model == "" {
		r.p.Model = rt.model
	}
	params := r.top[fOptions]
	adapter := r.top[fAdapter]
	if adapter == absent {
		adapter = r.get(params, "adapter_id")
	}
	if r.kind(adapter) == kindArray {
		adapter = r.first(adapter)
	}
	r.name(&r.p.Adapter, adapter)
	r.p.Stream = r.isTrue(r.top[fStream]) || !r.present(r.top[fStream]) && (rt.stream || apis[r.p.API].streams)
	r.p.MaxTokens = r.integer(r.top[fMaxTokens])
	if r.p.MaxTokens == 0 {
		r.p.MaxTokens = r.integer(r.top[fMaxOutput])
	}
	choices := max(r.integer(r.top[fChoices]), r.integer(r.top[fBestOf]))
	for key, val := range r.fields(params) {
		switch string(key) {
		case "max_new_tokens", "num_predict", "max_tokens":
			r.p.MaxTokens = r.integer(val)
		case "n", "best_of":
			choices = max(choices, r.integer(val))
		}
	}
	r.p.Choices = max(choices, 1)
}

// name copies the string v to dst, which costs an allocation only when it changes.
func (r *reader) name(dst *string, v value) {
	text := r.str(v)
	text = text[:min(len(text), maxName)]
	if string(text) != *dst {
		*dst = string(text)
	}
}

// rootKey is the root of the chain: it names all that makes an engine keep prompts
// apart without being part of them.
func (r *reader) rootKey() uint64 {
	b := appendSized(r.rootBuf[:0], r.in.Tenant)
	b = appendSized(b, r.p.Model)
	b = appendSized(b, r.p.Adapter)
	b = appendSized(b, r.str(r.top[fSalt]))
	b = appendSized(b, r.str(r.top[fExtraKey]))
	r.rootBuf = b
	return xxh3.HashSeed(b, r.in.Secret)
}

func appendSized[T string | []byte](dst []byte, s T) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

// templateOptions writes what changes the rendering of the whole prompt. Some templates
// use it only at the end; there the chain promises too little.
func (r *reader) templateOptions() {
	for i, v := range r.options {
		if r.empty(v) {
			continue
		}
		r.tag(tagOptions)
		r.writeMark(byte(i))
		r.value(v)
	}
}

// text writes a part whose content is a string. What should be one but is not counts
// as JSON.
func (r *reader) text(t tag, v value) {
	r.tag(t)
	switch r.kind(v) {
	case kindNull:
	case kindString:
		r.unescaped(r.raw(v))
	default:
		r.tag(tagJSON)
		r.json(r.raw(v))
	}
}

// value writes any value as JSON.
func (r *reader) value(v value) {
	if r.kind(v) == kindString {
		r.quoted(r.raw(v))
		return
	}
	r.json(r.raw(v))
}
