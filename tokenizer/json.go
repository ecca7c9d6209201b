package tokenizer

import "bytes"

// json writes a JSON text as an engine's template renders it: the order of keys is
// kept, white space goes, and of several ways to escape a character one remains. The
// text need not be well-formed.
func (s *stream) json(text []byte) {
	start := 0 // of what is not written yet
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			n := stringEnd(text[i+1:])
			if n < 0 {
				n = len(text) - i - 1
			}
			content := text[i+1 : i+1+n]
			if bytes.IndexByte(content, '\\') >= 0 {
				s.put(text[start : i+1])
				s.escaped(content)
				start = i + 1 + n
			}
			i += n + 2
		case c <= ' ':
			s.put(text[start:i])
			i++
			start = i
		default:
			i++
		}
	}
	if start < len(text) {
		s.put(text[start:])
	}
}

// quoted writes the raw JSON string in quotes, as json does.
func (s *stream) quoted(raw []byte) {
	s.writeByte('"')
	s.escaped(raw)
	s.writeByte('"')
}

// escaped writes a raw JSON string with no escapes left but those of quote and backslash.
func (s *stream) escaped(raw []byte) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			s.put(raw)
			return
		}
		s.put(raw[:i])
		r, width := decodeEscape(raw[i:])
		if width == 0 {
			return
		}
		if r == '"' || r == '\\' {
			s.writeByte('\\')
		}
		s.writeRune(r)
		raw = raw[i+width:]
	}
}
