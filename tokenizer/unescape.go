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
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		r, width := decodeEscape(raw[i:])
		if width == 0 {
			return dst
		}
		dst = utf8.AppendRune(dst, r)
		raw = raw[i+width:]
	}
}

// simpleEscapes maps the character after a backslash to the one it stands for.
var simpleEscapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f',
}

// decodeEscape returns what the escape at the start of raw stands for, and its width,
// which is 0 when raw ends too early. Of an invalid one it returns the backslash.
func decodeEscape(raw []byte) (r rune, width int) {
	if len(raw) < 2 {
		return 0, 0
	}
	if c := simpleEscapes[raw[1]]; c != 0 {
		return rune(c), 2
	}
	if raw[1] == 'u' {
		return decodeUnicode(raw)
	}
	return '\\', 1
}

func decodeUnicode(raw []byte) (r rune, width int) {
	if len(raw) < 6 {
		return 0, 0
	}
	r = hex4(raw[2:6])
	switch {
	case r < 0:
		return '\\', 1
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	low := rune(-1)
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		low = hex4(raw[8:12])
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return r, 6
	}
	return r, 12
}

// hexDigits maps hexadecimal digits to their values and all else to -1.
var hexDigits = func() (t [256]rune) {
	for c := range t {
		t[c] = -1
	}
	for i := range rune(16) {
		t["0123456789abcdef"[i]], t["0123456789ABCDEF"[i]] = i, i
	}
	return t
}()

// hex4 reads four hexadecimal digits. The result is negative if they are none.
func hex4(s []byte) rune {
	return hexDigits[s[0]]<<12 | hexDigits[s[1]]<<8 | hexDigits[s[2]]<<4 | hexDigits[s[3]]
}
