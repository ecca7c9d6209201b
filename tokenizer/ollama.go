package tokenizer

// ollamaGenerate reads Ollama's /api/generate. Its template makes a chat of the system
// prompt and the prompt; context holds the tokens of what was said before.
func (r *reader) ollamaGenerate() {
	if r.present(r.top[fContext]) {
		r.prompt(r.top[fContext])
	}
	if r.isTrue(r.top[fRaw]) {
		r.mediaPart(r.top[fImages], imageTokens)
		r.prompt(r.top[fPrompt])
		r.suffix(r.top[fSuffix])
		return
	}
	r.system(r.top[fSystem])
	if r.empty(r.top[fPrompt]) {
		return
	}
	r.header([]byte("user"))
	r.mediaPart(r.top[fImages], imageTokens)
	r.prompt(r.top[fPrompt])
	r.suffix(r.top[fSuffix])
	r.footer()
}
