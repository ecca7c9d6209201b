package tokenizer

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends the text that a raw JSON string stands for. An escape that
// the end of raw cuts in two is left out, an invalid one kept as it is, a lone
// surrogate becomes U+FFFD, and invalid UTF-8 passes through.
func appendUnescaped(dst, raw []byte) []byte {
	dst = slices.Grow(dst, len(raw))
	var esc [utf8.UTFMax]byte
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		n, width := decodeEscape(raw[i:], &esc)
		if width == 0 {
			return dst
		}
		dst = append(dst, esc[:n]...)
		raw = raw[i+width:]
	}
}

// simpleEscapes maps the character after a backslash to the one it stands for.
var simpleEscapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f',
}

// decodeEscape decodes the escape at the start of raw into esc. It returns the length
// of the text and the width of the escape, which is 0 when raw ends too early.
func decodeEscape(raw []byte, esc *[utf8.UTFMax]byte) (n, width int) {
	if len(raw) < 2 {
		return 0, 0
	}
	if c := simpleEscapes[raw[1]]; c != 0 {
		esc[0] = c
		return 1, 2
	}
	if raw[1] == 'u' {
		return decodeUnicode(raw, esc)
	}
	esc[0], esc[1] = '\\', raw[1]
	return 2, 2
}

func decodeUnicode(raw []byte, esc *[utf8.UTFMax]byte) (n, width int) {
	if len(raw) < 6 {
		return 0, 0
	}
	r := hex4(raw[2:6])
	if r < 0 {
		esc[0], esc[1] = '\\', 'u'
		return 2, 2
	}
	width = 6
	if utf16.IsSurrogate(r) {
		low := rune(-1)
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			low = hex4(raw[8:12])
		}
		r = utf16.DecodeRune(r, low)
		if r != utf8.RuneError {
			width = 12
		}
	}
	return utf8.EncodeRune(esc[:], r), width
}

// hex4 reads four hexadecimal digits, or returns -1.
func hex4(s []byte) (r rune) {
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
