package health

import (
	"bytes"
	"iter"
	"math"
	"strconv"
)

// sample is one line of a page in Prometheus's text format. Only its name is
// cut out at once; labels and value are parsed for the few wanted names.
type sample struct {
	name []byte
	rest []byte // labels, value, and perhaps a timestamp and an exemplar
}

// samples yields the sample lines of a page and allocates nothing. Lines that
// are not of the format give samples whose name or value is of no use.
func samples(page []byte) iter.Seq[sample] {
	return func(yield func(sample) bool) {
		for len(page) > 0 {
			line := page
			if end := bytes.IndexByte(page, '\n'); end >= 0 {
				line, page = page[:end], page[end+1:]
			} else {
				page = nil
			}
			line = skipBlanks(line)
			if len(line) == 0 || line[0] == '#' {
				continue
			}
			end := nameEnd(line)
			if !yield(sample{name: line[:end], rest: line[end:]}) {
				return
			}
		}
	}
}

// nameEnd returns how long the name at the start of a line is. Looking for the
// brace first leaves one comparison for each byte of the name.
func nameEnd(line []byte) int {
	end := bytes.IndexByte(line, '{')
	if end < 0 {
		end = len(line)
	}
	for i, c := range line[:end] {
		if c <= ' ' {
			return i
		}
	}
	return end
}

// value returns the sample's number. All that engines tell is finite and not
// negative, so other numbers are refused like text that is no number.
func (s sample) value() (float64, bool) {
	rest := skipBlanks(s.rest)
	if len(rest) > 0 && rest[0] == '{' {
		end := labelsEnd(rest)
		if end < 0 {
			return 0, false
		}
		rest = skipBlanks(rest[end+1:])
	}
	return parseNumber(firstField(rest))
}

// label returns the text of a label, nil if the sample has no such label.
// Escapes in it are left as they are.
func (s sample) label(name string) []byte {
	rest := skipBlanks(s.rest)
	if len(rest) == 0 || rest[0] != '{' {
		return nil
	}
	for rest = rest[1:]; ; {
		rest = bytes.TrimLeft(rest, " \t,")
		eq := bytes.IndexByte(rest, '=')
		if eq < 0 || rest[0] == '}' {
			return nil
		}
		key := bytes.TrimRight(rest[:eq], " \t")
		rest = skipBlanks(rest[eq+1:])
		if len(rest) == 0 || rest[0] != '"' {
			return nil
		}
		end := quoteEnd(rest)
		if end < 0 {
			return nil
		}
		if string(key) == name {
			return rest[1:end]
		}
		rest = rest[end+1:]
	}
}

// labelNumber returns a label's text as a number, NaN if it is none; engines
// write None for what is not set.
func (s sample) labelNumber(name string) float64 {
	if v, ok := parseNumber(s.label(name)); ok {
		return v
	}
	return math.NaN()
}

// labelsEnd returns the index of the brace that closes the one at b[0], -1 if
// there is none. Braces within quotes do not count.
func labelsEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '}':
			return i
		case '"':
			end := quoteEnd(b[i:])
			if end < 0 {
				return -1
			}
			i += end
		}
	}
	return -1
}

// quoteEnd returns the index of the quote that closes the one at b[0], -1 if
// there is none.
func quoteEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

func firstField(b []byte) []byte {
	for i, c := range b {
		if c == ' ' || c == '\t' || c == '\r' {
			return b[:i]
		}
	}
	return b
}

// parseNumber parses a finite number that is not negative. No number has more
// digits than the bound, and so the conversion to a string stays on the stack.
func parseNumber(b []byte) (float64, bool) {
	if len(b) == 0 || len(b) > 32 {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	return v, true
}
