package tokenizer

// part is the fields of one part of a message's content, over all APIs.
type part struct {
	typ, text, refusal, name, input, content, media value
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
		case "image_url", "image", "input_audio", "audio_url", "audio", "video_url", "video", "source",
			"file", "file_data", "file_id", "file_url":
			if r.present(val) {
				p.media = val
			}
		}
	}
	return p
}

// mediaTokens is what a part of some type that holds media counts as.
var mediaTokens = map[string]int{
	"image_url": imageTokens, "image": imageTokens, "input_image": imageTokens,
	"audio_url": audioTokens, "audio": audioTokens, "input_audio": audioTokens,
	"video_url": videoTokens, "video": videoTokens, "input_video": videoTokens,
	"file": fileTokens, "input_file": fileTokens,
}

// part writes one part of a message's content. A part of unknown type counts as JSON,
// and so does media that is not there but named by some other field.
func (r *reader) part(v value, p part) {
	if r.kind(v) == kindString {
		r.textPart(v)
		return
	}
	typ := r.str(p.typ)
	if tokens := mediaTokens[string(typ)]; tokens > 0 && p.media != absent {
		r.mediaPart(p.media, tokens)
		return
	}
	switch string(typ) {
	case "text", "input_text", "output_text":
		r.textPart(p.text)
	case "refusal":
		r.text(tagRefusal, p.refusal)
	case "document":
		r.documentPart(p.media)
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
	case p.typ == absent && p.media != absent:
		r.mediaPart(p.media, imageTokens)
	default:
		r.tag(tagJSON)
		r.object(v)
	}
}

// mediaPart writes an image, audio, video or file: a string (base64, URL or id), an
// object that holds one, or an array of these.
func (r *reader) mediaPart(v value, tokens int) {
	switch r.kind(v) {
	case kindNull:
	case kindString:
		r.media(r.raw(v), tokens)
	case kindArray:
		for e := range r.elements(v) {
			r.mediaPart(e, tokens)
		}
	default:
		for key, val := range r.fields(v) {
			switch string(key) {
			case "url", "data", "file_data", "file_id", "file_url", "id":
				if !r.empty(val) && r.kind(val) == kindString {
					r.media(r.raw(val), tokens)
					return
				}
			}
		}
		r.tag(tagJSON)
		r.json(r.raw(v))
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
