package tokenizer

// completions reads OpenAI's completions and llama.cpp's own: the first prompt is the
// chain, further ones of a batch are extra.
func (r *reader) completions() {
	r.mediaPart(r.top[fImages], imageTokens)
	r.mediaPart(r.top[fEmbeds], fileTokens)
	r.prompts(r.top[fPrompt])
	r.suffix(r.top[fSuffix])
}

func (r *reader) suffix(v value) {
	if !r.empty(v) {
		r.text(tagSuffix, v)
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
		if !first {
			r.endChain()
		}
		r.prompt(p)
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
		r.textPart(v)
	}
}

// promptObject writes llama.cpp's {"prompt_string", "multimodal_data"}, vLLM's
// {"content": parts}, or a part as in a message.
func (r *reader) promptObject(v value) {
	if text := r.get(v, "prompt_string"); text != absent {
		r.mediaPart(r.get(v, "multimodal_data"), imageTokens)
		r.prompt(text)
		return
	}
	p := r.partFields(v)
	if p.typ == absent && p.content != absent {
		r.content(p.content, absent)
		return
	}
	r.part(v, p)
}
