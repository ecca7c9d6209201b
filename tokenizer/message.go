package tokenizer

// message is a message's fields that templates render. An assistant's reasoning is not
// among them: most templates drop it from old turns (Qwen3, DeepSeek, gpt-oss), clients
// drop it at different times, and a turn must match whether it is sent again or not.
// Ids of tool calls are left out too: they say nothing that the order does not.
type message struct {
	role, name, content, refusal, images, calls, call value
}

func (r *reader) messageFields(v value) (m message) {
	for key, val := range r.fields(v) {
		switch string(key) {
		case "role":
			m.role = val
		case "name", "tool_name":
			m.name = val
		case "content":
			m.content = val
		case "refusal":
			m.refusal = val
		case "images":
			m.images = val
		case "tool_calls":
			m.calls = val
		case "function_call":
			m.call = val
		}
	}
	return m
}

// message writes one message of a chat.
func (r *reader) message(v value) {
	m := r.messageFields(v)
	r.header(r.str(m.role))
	if name := r.raw(m.name); len(name) > 0 && r.kind(m.name) == kindString {
		r.text(tagName, name)
	}
	for image := range r.elements(m.images) {
		r.mediaPart(image, imageTokens)
	}
	r.content(m.content)
	if !r.empty(m.refusal) {
		r.text(tagRefusal, r.raw(m.refusal))
	}
	for call := range r.elements(m.calls) {
		r.toolCall(call)
	}
	if r.present(m.call) {
		r.toolCall(m.call)
	}
	r.footer()
}

// header begins a message.
func (r *reader) header(role []byte) {
	assistant := string(role) == "assistant" || string(role) == "model"
	if assistant {
		r.turnEnd()
		r.replyFrom = r.pos
	}
	r.tag(tagMessage)
	for _, c := range role[:min(len(role), maxName)] {
		if c != mark {
			r.writeMark(c)
		}
	}
	r.weigh(messageTokens, messageTokens*tokenWeight)
}

// footer ends a message.
func (r *reader) footer() {
	r.messageEnd()
	r.replyFrom = -1
}

// content writes a message's content: a string, or parts. Empty content is the same
// as none.
func (r *reader) content(v value) {
	switch r.kind(v) {
	case kindNull:
	case kindString:
		r.textPart(v)
	case kindArray:
		for part := range r.elements(v) {
			r.part(part)
		}
	case kindObject:
		r.part(v)
	default:
		r.tag(tagJSON)
		r.json(r.raw(v))
	}
}

func (r *reader) textPart(v value) {
	if raw := r.raw(v); len(raw) > 0 {
		r.text(tagText, raw)
	}
}

// toolCall writes a call in OpenAI's or Ollama's form: {"function": {"name",
// "arguments"}}, or the inner object alone.
func (r *reader) toolCall(v value) {
	fn := r.get(v, "function")
	if fn == absent {
		fn = v
	}
	var name, arguments value
	for key, val := range r.fields(fn) {
		switch string(key) {
		case "name":
			name = val
		case "arguments":
			arguments = val
		}
	}
	r.call(name, arguments)
}

// call writes a tool call. Engines parse arguments that are text and render them anew,
// so that their white space does not count.
func (r *reader) call(name, arguments value) {
	r.text(tagCall, r.raw(name))
	if r.kind(arguments) != kindString {
		r.tag(tagArguments)
		r.json(r.raw(arguments))
		return
	}
	raw := r.raw(arguments)
	if len(raw) == 0 || raw[0] != '{' {
		r.text(tagRawArgs, raw)
		return
	}
	r.scratch = appendUnescaped(r.scratch[:0], raw)
	r.tag(tagArguments)
	r.json(r.scratch)
}
