package tokenizer

// chat reads OpenAI chat completions: tools, then messages.
func (r *reader) chat() {
	r.tools(r.top[fTools])
	r.tools(r.top[fFunctions])
	r.documents(r.top[fDocuments])
	r.messages(r.top[fMessages])
}

func (r *reader) messages(list value) {
	for m := range r.elements(list) {
		r.message(m)
	}
}

// documents writes what is to be answered from; templates render it before the messages.
func (r *reader) documents(list value) {
	for d := range r.elements(list) {
		r.tag(tagDocument)
		r.value(d)
	}
}
