package tokenizer

import "bytes"

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
	if r.kind(v) != kindObject {
		r.header(nil)
		r.content(v, absent)
		r.footer()
		return
	}
	m := r.messageFields(v)
	if !r.startsWithResult(m.content) {
		r.header(r.str(m.role))
	}
	if !r.empty(m.name) {
		r.text(tagName, m.name)
	}
	r.mediaPart(m.images, imageTokens)
	r.content(m.content, m.role)
	if !r.empty(m.refusal) {
		r.text(tagRefusal, m.refusal)
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
	role = role[:min(len(role), maxName)]
	r.notText += len(role)
	r.put(role)
	r.weigh(messageTokens, messageTokens*tokenWeight)
}

// footer ends a message.
func (r *reader) footer() {
	r.messageEnd()
	r.replyFrom = -1
}

// content writes a message's content: a string, or parts. Empty content is the same
// as none. Results of tools that stand among the parts are messages of their own, as
// engines render them; what follows them is headed by role again.
func (r *reader) content(v, role value) {
	switch r.kind(v) {
	case kindObject:
		r.part(v, r.partFields(v))
	case kindArray:
		headed := true
		for e := range r.elements(v) {
			p := r.partFields(e)
			switch {
			case r.isResult(p):
				r.toolResult(p)
				headed = false
				continue
			case r.isAttribution(p):
				continue
			case !headed:
				r.footer()
				r.header(r.str(role))
				headed = true
			}
			r.part(e, p)
		}
	default:
		r.textPart(v)
	}
}

// isResult reports whether a part is the result of a tool call.
func (r *reader) isResult(p part) bool { return string(r.str(p.typ)) == "tool_result" }

// startsWithResult reports whether content begins with one, which brings a header of its own.
func (r *reader) startsWithResult(content value) bool {
	return r.kind(content) == kindArray && r.isResult(r.partFields(r.first(content)))
}

// isAttribution reports whether a part is the line by which a client of Anthropic's names
// itself. It differs from request to request, and engines take it out.
func (r *reader) isAttribution(p part) bool {
	return r.p.API == Messages && bytes.HasPrefix(r.raw(p.text), []byte("x-anthropic-billing-header"))
}

func (r *reader) toolResult(p part) {
	r.footer()
	r.header([]byte("tool"))
	r.content(p.content, absent)
}

// textPart writes the text of a message or prompt, unless it is empty.
func (r *reader) textPart(v value) {
	switch {
	case r.empty(v):
	case r.kind(v) == kindString && r.replyFrom >= 0:
		if raw := afterThinking(r.raw(v)); len(raw) > 0 {
			r.tag(tagText)
			r.unescaped(raw)
		}
	default:
		r.text(tagText, v)
	}
}

// afterThinking drops reasoning that an engine without a reasoning parser left at the
// start of an answer, as templates do. The JSON string may escape < and /.
func afterThinking(raw []byte) []byte {
	for from := 0; ; {
		i := bytes.Index(raw[from:], []byte("/think"))
		if i < 0 {
			return raw
		}
		before := bytes.TrimSuffix(raw[:from+i], []byte(`\`))
		after := raw[from+i+len("/think"):]
		from += i + 1
		opened := bytes.HasSuffix(before, []byte("<")) || bytes.HasSuffix(before, []byte(`\u003c`))
		if !opened {
			continue
		}
		for _, end := range []string{">", `\u003e`} {
			if rest, ok := bytes.CutPrefix(after, []byte(end)); ok {
				return trimEscaped(rest)
			}
		}
	}
}

// trimEscaped drops line ends at the start of a raw JSON string.
func trimEscaped(raw []byte) []byte {
	for bytes.HasPrefix(raw, []byte(`\n`)) {
		raw = raw[2:]
	}
	return raw
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
	r.text(tagCall, name)
	if r.kind(arguments) != kindString {
		r.tag(tagArguments)
		r.json(r.raw(arguments))
		return
	}
	r.scratch = appendUnescaped(r.scratch[:0], r.raw(arguments))
	if args := bytes.TrimLeft(r.scratch, " \t\r\n"); len(args) == 0 || args[0] != '{' {
		r.tag(tagRawArgs)
		r.put(args)
		return
	}
	r.tag(tagArguments)
	r.json(r.scratch)
}
