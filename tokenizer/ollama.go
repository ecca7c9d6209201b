package tokenizer

// ollamaGenerate reads Ollama's /api/generate. Its template makes a chat of the system
// prompt and the prompt; context holds the tokens of what was said before.
func (r *reader) ollamaGenerate() {
	if r.present(r.top[fContext]) {
		r.prompt(r.top[fContext])
	}
	if r.isTrue(r.top[fRaw]) {
		r.images(r.top[fImages])
		r.prompt(r.top[fPrompt])
		r.suffix(r.top[fSuffix])
		return
	}
	r.system(r.top[fSystem])
	if r.empty(r.top[fPrompt]) {
		return
	}
	r.header([]byte("user"))
	r.images(r.top[fImages])
	r.prompt(r.top[fPrompt])
	r.suffix(r.top[fSuffix])
	r.footer()
}

// images writes images that stand beside the text: one, or an array.
func (r *reader) images(v value) {
	if r.kind(v) == kindString {
		r.mediaPart(v, imageTokens)
		return
	}
	for image := range r.elements(v) {
		r.mediaPart(image, imageTokens)
	}
}
