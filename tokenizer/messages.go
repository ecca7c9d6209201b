package tokenizer

// anthropic reads Anthropic's messages: tools, the system prompt, messages.
func (r *reader) anthropic() {
	r.tools(r.top[fTools])
	r.system(r.top[fSystem])
	r.messages(r.top[fMessages])
}

// system writes a system prompt that stands outside the messages like one inside.
func (r *reader) system(v value) {
	if r.empty(v) {
		return
	}
	r.header([]byte("system"))
	r.content(v, absent)
	r.footer()
}
