package tokenizer

// part is the fields of one part of a message's content, over all APIs.
type part struct {
	typ, text, refusal, name, input, content value
}

func (r *reader) partFields(v value) (p part) {
	for key, val := range r.fields(v) {
		switch string(key) {
		case "type":
			p.typ = val
		case "text":
			p.text = val
		case "refusal":
			p.refusal = val
		case "name":
			p.name = val
		case "input":
			p.input = val
		case "content":
			p.content = val
		}
	}
	return p
}

// part writes one part of a message's content. A part of unknown type counts as JSON,
// and so does media that is not there but named by some other field.
func (r *reader) part(v value, p part) {
	if r.kind(v) == kindString {
		r.textPart(v)
		return
	}
	typ := r.str(p.typ)
	if tokens := mediaTokens[string(typ)]; tokens > 0 {
		r.mediaPart(v, tokens)
		return
	}
	switch string(typ) {
	case "text", "input_text", "output_text":
		r.textPart(p.text)
	case "refusal":
		r.text(tagRefusal, p.refusal)
	case "document":
		r.documentPart(r.get(v, "source"))
	case "tool_use":
		r.call(p.name, p.input)
	case "thinking", "redacted_thinking", "reasoning": // see message
	default:
		r.unknownPart(v, p)
	}
}

// unknownPart writes a part whose type is missing or new.
func (r *reader) unknownPart(v value, p part) {
	switch {
	case p.typ == absent && p.text != absent:
		r.textPart(p.text)
	case p.typ == absent && r.mediaIn(v) != absent:
		r.mediaPart(v, imageTokens)
	default:
		r.tag(tagJSON)
		r.object(v)
	}
}

// documentPart writes Anthropic's document: a file, or text.
func (r *reader) documentPart(source value) {
	switch string(r.str(r.get(source, "type"))) {
	case "text":
		r.textPart(r.get(source, "data"))
	case "content":
		r.content(r.get(source, "content"), absent)
	default:
		r.mediaPart(source, fileTokens)
	}
}

// object writes an object as JSON without marks that only tell an engine what to cache.
func (r *reader) object(v value) {
	if r.kind(v) != kindObject {
		r.value(v)
		return
	}
	r.writeByte('{')
	for key, val := range r.fields(v) {
		if string(key) == "cache_control" {
			continue
		}
		r.quoted(r.raw(val - 1))
		r.writeByte(':')
		r.value(val)
		r.writeByte(',')
	}
	r.writeByte('}')
}
