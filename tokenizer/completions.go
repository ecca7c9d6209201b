package tokenizer

import "bytes"

// completions reads OpenAI's completions and llama.cpp's own: the first prompt is the
// chain, further ones of a batch are extra.
func (r *reader) completions() {
	r.prompts(r.top[fPrompt])
	if !r.empty(r.top[fSuffix]) {
		r.text(tagSuffix, r.raw(r.top[fSuffix]))
	}
}

// prompts writes a prompt in any of its forms: a string, token ids, llama.cpp's mix of
// both or its object, or a batch: an array of these.
func (r *reader) prompts(v value) {
	if r.kind(v) != kindArray || r.mixed(v) {
		r.prompt(v)
		return
	}
	first := true
	for p := range r.elements(v) {
		if first {
			r.prompt(p)
		} else {
			r.extra(p)
		}
		first = false
	}
}

// mixed reports whether an array holds token ids beside text, and thus one prompt.
func (r *reader) mixed(v value) bool {
	for e := range r.elements(v) {
		if r.kind(e) == kindNumber {
			return true
		}
	}
	return false
}

func (r *reader) prompt(v value) {
	switch r.kind(v) {
	case kindNull:
	case kindString:
		r.textPart(v)
	case kindNumbers:
		r.tokenIDs(r.raw(v))
	case kindArray:
		for e := range r.elements(v) {
			if r.kind(e) == kindNumber {
				r.tag(tagTokens)
				r.tokenID(uint32(r.integer(e)))
			} else {
				r.prompt(e)
			}
		}
	case kindObject:
		r.promptObject(v)
	default:
		r.tag(tagJSON)
		r.json(r.raw(v))
	}
}

// promptObject writes llama.cpp's {"prompt_string", "multimodal_data"}.
func (r *reader) promptObject(v value) {
	for image := range r.elements(r.get(v, "multimodal_data")) {
		r.mediaPart(image, imageTokens)
	}
	r.prompt(r.get(v, "prompt_string"))
}

// extra counts a prompt that is not part of the chain, its escapes included.
func (r *reader) extra(v value) {
	switch r.kind(v) {
	case kindNumbers:
		r.p.ExtraTokens += bytes.Count(r.raw(v), []byte{','}) + 1
	default:
		r.p.ExtraBytes += len(r.raw(v))
	}
}
