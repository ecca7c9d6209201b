package tokenizer

import "bytes"

// kind is the type of a JSON value on the tape.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindKey
	kindNumbers // an array that holds nothing but numbers, as one value
	kindArray
	kindObject
	kindOpaque // an array or object nested too deep to be looked into
)

// node is one value on the tape. Raw bytes of a string leave out its quotes, those of
// arrays and objects include their brackets.
type node struct {
	start, end uint32
	next       uint32 // index of the value after this one, its children skipped
	kind       kind
}

// value is the index of a node. Every tape begins with a null node, which stands for
// values that are absent, and the root comes next.
type value uint32

const (
	absent value = 0
	root   value = 1
)

// document is a JSON text with its flat tape of values in the order of the text. An
// object's children are keys and values in turn, so that a value's key is the node before it.
type document struct {
	body []byte
	tape []node

	at       int // scanning position
	depth    int
	open     [maxDepth]uint32
	unescape []byte // memory for keys and short strings
}

func (d *document) kind(v value) kind { return d.tape[v].kind }

// raw returns the bytes of v as they stand in the body, escapes included.
func (d *document) raw(v value) []byte {
	n := &d.tape[v]
	return d.body[n.start:n.end]
}

func (d *document) present(v value) bool { return d.kind(v) != kindNull }

// empty reports whether v is absent, null, "", [] or {}.
func (d *document) empty(v value) bool {
	switch d.kind(v) {
	case kindNull:
		return true
	case kindString:
		return len(d.raw(v)) == 0
	case kindArray, kindObject:
		return d.tape[v].next == uint32(v)+1
	}
	return false
}

// str returns the unescaped string v, valid until the next call of str. Anything but
// a string is "".
func (d *document) str(v value) []byte {
	if k := d.kind(v); k != kindString && k != kindKey {
		return nil
	}
	raw := d.raw(v)
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	d.unescape = appendUnescaped(d.unescape[:0], raw)
	return d.unescape
}

// elements yields the elements of an array. Numbers of an all-number array are not
// looked into.
func (d *document) elements(v value) func(func(value) bool) {
	return func(yield func(value) bool) {
		if d.kind(v) != kindArray {
			return
		}
		end := value(d.tape[v].next)
		for e := v + 1; e < end; e = value(d.tape[e].next) {
			if !yield(e) {
				return
			}
		}
	}
}

// fields yields the keys, unescaped, and values of an object in the order of the text,
// duplicates included: callers keep the last one, as Python does. A key is valid until
// the next step.
func (d *document) fields(v value) func(func([]byte, value) bool) {
	return func(yield func([]byte, value) bool) {
		if d.kind(v) != kindObject {
			return
		}
		end := value(d.tape[v].next)
		for k := v + 1; k < end; k = value(d.tape[k+1].next) {
			if !yield(d.str(k), k+1) {
				return
			}
		}
	}
}

// first returns the first element of an array.
func (d *document) first(v value) value {
	for e := range d.elements(v) {
		return e
	}
	return absent
}

// get returns the last field of an object with that name.
func (d *document) get(v value, name string) (found value) {
	for key, val := range d.fields(v) {
		if string(key) == name {
			found = val
		}
	}
	return found
}

// integer reads a number, or a string that holds one, as a count between 0 and 2^31-1.
func (d *document) integer(v value) int {
	if k := d.kind(v); k != kindNumber && k != kindString {
		return 0
	}
	n := 0
	for _, c := range d.raw(v) {
		if c < '0' || c > '9' {
			break
		}
		n = min(n*10+int(c-'0'), 1<<31-1)
	}
	return n
}

// isTrue reports whether v is true, or the text "true".
func (d *document) isTrue(v value) bool { return string(d.raw(v)) == "true" }
