package tokenizer

import (
	"bytes"
	"errors"
)

const (
	// maxNodes bounds the tape to 8 MiB. No real request comes near it: arrays of
	// numbers are one value. A body with more values is read up to there.
	maxNodes = 1 << 19
	// firstNodes grows to maxNodes fourfold, so that what growing leaves behind is a third of it.
	firstNodes = 1 << 9
	// maxDepth is how deep values are looked into. Deeper ones are one opaque value each.
	maxDepth = 64
)

var (
	errShort  = errors.New("text ends inside a value")
	errFull   = errors.New("too many values")
	errSyntax = errors.New("broken JSON")
)

// Classes of bytes outside strings, as bits.
const (
	separator = 1 << iota
	letter    // of true, false, null, NaN, Infinity
	numeral   // what can be in a number
)

var class = func() (t [256]uint8) {
	for _, c := range " \t\r\n,:" {
		t[c] = separator
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = letter, letter
	}
	for _, c := range "0123456789+-.eE" {
		t[c] = numeral
	}
	return t
}()

// scan lays out the values of body on the tape. It is lenient: separators are not
// checked, since the engine judges the request, and what follows the first value is
// ignored. A text that ends early is an error unless truncated; then every open value
// ends where the text ends. cut tells that not all of the body was laid out.
func (d *document) scan(body []byte, truncated bool) (cut bool, err error) {
	d.body, d.at, d.depth = body, 0, 0
	d.tape = append(d.tape[:0], node{next: uint32(root)})
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		d.at = 3
	}
	err = d.scanValue()
	for err == nil && d.depth > 0 {
		err = d.step()
	}
	if err == errFull || err == errShort && truncated {
		d.closeAll()
		return true, nil
	}
	return false, err
}

// step scans the next field or element of the innermost open value, or closes it.
func (d *document) step() error {
	top := d.open[d.depth-1]
	c, ok := d.next()
	if !ok {
		return errShort
	}
	object := d.tape[top].kind == kindObject
	if c == '}' && object || c == ']' && !object {
		d.at++
		d.close(top)
		return nil
	}
	if object {
		if c != '"' {
			return errSyntax
		}
		if err := d.scanString(kindKey); err != nil {
			return err
		}
	}
	return d.scanValue()
}

// next skips separators and returns the byte that follows.
func (d *document) next() (byte, bool) {
	for d.at < len(d.body) {
		if c := d.body[d.at]; class[c] != separator {
			return c, true
		}
		d.at++
	}
	return 0, false
}

func (d *document) scanValue() error {
	c, ok := d.next()
	if !ok {
		return errShort
	}
	switch c {
	case '"':
		return d.scanString(kindString)
	case '{':
		return d.enter(kindObject)
	case '[':
		if end := numbersEnd(d.body[d.at:]); end > 0 {
			return d.scanNumbers(end)
		}
		return d.enter(kindArray)
	}
	return d.scanLiteral(c)
}

func (d *document) scanNumbers(n int) error {
	start := d.at
	d.at += n
	if err := d.add(kindNumbers, start, d.at); err != nil {
		return err
	}
	if d.body[d.at-1] != ']' {
		return errShort
	}
	return nil
}

func (d *document) scanString(k kind) error {
	start := d.at + 1
	n := stringEnd(d.body[start:])
	if n < 0 {
		d.at = len(d.body)
		if k == kindString {
			if err := d.add(k, start, d.at); err != nil {
				return err
			}
		}
		return errShort
	}
	d.at = start + n + 1
	return d.add(k, start, start+n)
}

func (d *document) scanLiteral(c byte) error {
	start := d.at
	for d.at < len(d.body) && class[d.body[d.at]]&(letter|numeral) != 0 {
		d.at++
	}
	if d.at == len(d.body) && d.depth > 0 {
		return errShort
	}
	switch {
	case c == 't', c == 'f':
		return d.add(kindBool, start, d.at)
	case c == 'n':
		return d.add(kindNull, start, d.at)
	case d.at > start && (class[c] == numeral || c == 'N' || c == 'I'):
		return d.add(kindNumber, start, d.at)
	}
	return errSyntax
}

func (d *document) add(k kind, start, end int) error {
	if len(d.tape) == cap(d.tape) {
		if len(d.tape) >= maxNodes {
			return errFull
		}
		d.tape = append(make([]node, 0, min(max(firstNodes, 4*len(d.tape)), maxNodes)), d.tape...)
	}
	d.tape = append(d.tape, node{uint32(start), uint32(end), uint32(len(d.tape) + 1), k})
	return nil
}

// enter opens an array or object, or takes it as one opaque value when nested too deep.
func (d *document) enter(k kind) error {
	start := d.at
	if d.depth == maxDepth {
		n := nestedEnd(d.body[start:])
		d.at = start + n
		if err := d.add(kindOpaque, start, d.at); err != nil {
			return err
		}
		if d.at == len(d.body) {
			return errShort
		}
		return nil
	}
	if err := d.add(k, start, start); err != nil {
		return err
	}
	d.open[d.depth] = uint32(len(d.tape) - 1)
	d.depth++
	d.at++
	return nil
}

func (d *document) close(top uint32) {
	d.tape[top].end = uint32(d.at)
	d.tape[top].next = uint32(len(d.tape))
	d.depth--
}

// closeAll ends every open value at the scanning position. A key that has lost its
// value goes.
func (d *document) closeAll() {
	if n := len(d.tape); n > 0 && d.tape[n-1].kind == kindKey {
		d.tape = d.tape[:n-1]
	}
	for d.depth > 0 {
		d.close(d.open[d.depth-1])
	}
}

// stringEnd returns where the closing quote is in text that follows an opening one, or -1.
func stringEnd(s []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(s[from:], '"')
		if i < 0 {
			return -1
		}
		i += from
		slashes := 0
		for i-slashes > from && s[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		from = i + 1
	}
}

// numbersEnd returns the length of the array of numbers that s begins with, all of s when
// it does not end, or 0 if s begins with another kind of array or an empty one.
func numbersEnd(s []byte) int {
	i := 1
	for i < len(s) && class[s[i]] == separator {
		i++
	}
	first := i
	for i < len(s) && class[s[i]]&(numeral|separator) != 0 {
		i++
	}
	switch {
	case i == first:
		return 0
	case i == len(s):
		return i
	case s[i] == ']':
		return i + 1
	}
	return 0
}

// nestedEnd returns the length of the array or object that s begins with, without
// minding what is in it; all of s when it does not end.
func nestedEnd(s []byte) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			n := stringEnd(s[i+1:])
			if n < 0 {
				return len(s)
			}
			i += n + 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}
