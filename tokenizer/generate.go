package tokenizer

// nativeGenerate reads the engines' own generate calls: SGLang and Triton with text,
// TGI with inputs, SGLang and vLLM with token ids.
func (r *reader) nativeGenerate() {
	r.mediaPart(r.top[fImages], imageTokens)
	r.mediaPart(r.top[fAudio], audioTokens)
	r.mediaPart(r.top[fVideo], videoTokens)
	if r.present(r.top[fTokens]) {
		r.prompts(r.top[fTokens])
		return
	}
	r.prompts(r.top[fInputs])
}

// likeNative reports whether a body on an unknown path is such a call: its text is text.
func (r *reader) likeNative() bool {
	k := r.kind(r.top[fInputs])
	return k == kindString || k == kindArray || r.kind(r.top[fTokens]) == kindNumbers
}
