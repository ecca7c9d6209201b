package tokenizer

// infill reads llama.cpp's /infill in the order in which it renders: other files, what
// comes before the gap, the beginning of the answer, what comes after.
func (r *reader) infill() {
	for file := range r.elements(r.top[fInputExtra]) {
		r.text(tagName, r.get(file, "filename"))
		r.textPart(r.get(file, "text"))
		r.messageEnd()
	}
	r.textPart(r.top[fInputPrefix])
	r.prompt(r.top[fPrompt])
	r.suffix(r.top[fInputSuffix])
}
