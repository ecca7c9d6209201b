package tokenizer

// embeddings reads OpenAI's embeddings and what is called like them, such as Cohere's
// with texts.
func (r *reader) embeddings() { r.prompts(r.either(fInput, fTexts)) }

// pairs reads rerank and score calls: an engine reads the query anew with every text.
func (r *reader) pairs() {
	query := r.either(fQuery, fText1, fQueries)
	if r.kind(query) == kindArray {
		query = r.first(query)
	}
	r.prompt(query)
	again := r.written(r.buf)
	texts := r.either(fDocuments, fText2, fTexts)
	if r.kind(texts) != kindArray {
		r.prompt(texts)
		return
	}
	first := true
	for text := range r.elements(texts) {
		if !first {
			r.endChain()
			r.p.addExtra(again, 1)
		}
		r.prompt(text)
		first = false
	}
}

// either returns the first of some fields that is there.
func (r *reader) either(fields ...field) value {
	for _, f := range fields {
		if r.present(r.top[f]) {
			return r.top[f]
		}
	}
	return absent
}
