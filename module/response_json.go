package module

import (
	"bytes"
	"strconv"
)

const (
	maxPlaces  = 8  // depth of objects that matter; deeper ones are skipped
	maxLexeme  = 32 // bytes of the longest key or number that matters
	maxIDBytes = 96 // longer ids are not kept
)

// jsonScanner reads a JSON text piece by piece, as it passes, and notes the
// few fields that matter. It holds no more than one key or number. It does not
// check the text: from a malformed one it may note nothing or something wrong.
type jsonScanner struct {
	counts  usageCounts
	content bool // generated content has been seen since the last reset
	id      []byte

	state     jsonState
	frames    [maxPlaces]jsonFrame
	depth     int // of frames in use
	skipped   int // of containers open inside one that does not matter
	value     jsonMeaning
	expectKey bool
	ended     bool // a complete text has been read since the last reset

	inKey   bool
	escape  bool // the next byte of a string follows a backslash
	escaped bool // the string has had an escape
	length  int  // bytes of the string so far
	lexeme  [maxIDBytes]byte
	lexed   int
}

type jsonState uint8

const (
	jsonStructure jsonState = iota
	jsonString
	jsonNumber
	jsonSkipped
)

type jsonFrame struct {
	at    jsonPlace
	array bool
}

// reset prepares for the next text; what has been noted stays.
func (s *jsonScanner) reset() {
	s.content, s.ended = false, false
	s.state, s.depth, s.skipped = jsonStructure, 0, 0
	s.value, s.expectKey = jsonMeaning{}, false
}

func (s *jsonScanner) feed(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case jsonStructure:
			p = s.structure(p)
		case jsonString:
			p = s.text(p)
		case jsonNumber:
			p = s.digits(p)
		case jsonSkipped:
			p = s.skip(p)
		}
	}
}

// structure reads up to the first byte that changes the state.
func (s *jsonScanner) structure(p []byte) []byte {
	for i, c := range p {
		switch c {
		case '"':
			s.beginString()
			return p[i+1:]
		case '{', '[':
			s.open(c == '[')
		case '}', ']':
			s.close()
		case ':':
			s.expectKey = false
		case ',':
			s.next()
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if s.value.number != countNone {
				s.state, s.lexed = jsonNumber, 0
				return p[i:]
			}
		}
		if s.state != jsonStructure {
			return p[i+1:]
		}
	}
	return nil
}

// open enters an object or array, or skips it if nothing inside matters.
func (s *jsonScanner) open(array bool) {
	at := s.value.inside
	if s.depth == 0 {
		at = placeRoot
	}
	if at == placeNowhere || s.depth == maxPlaces {
		s.state, s.skipped = jsonSkipped, 1
		return
	}
	s.frames[s.depth] = jsonFrame{at, array}
	s.depth++
	s.expectKey = !array
	s.value = jsonMeaning{}
	if array {
		s.value.inside = at
	} else if at == placeToolCall {
		s.content = true
	}
}

func (s *jsonScanner) close() {
	if s.depth > 0 {
		s.depth--
	}
	s.ended = s.depth == 0
	s.valueEnded()
}

// valueEnded leaves a value behind.
func (s *jsonScanner) valueEnded() {
	s.state, s.expectKey, s.value = jsonStructure, false, jsonMeaning{}
	if s.depth > 0 && s.frames[s.depth-1].array {
		s.value.inside = s.frames[s.depth-1].at
	}
}

// next begins the next member or element.
func (s *jsonScanner) next() {
	s.valueEnded()
	s.expectKey = s.depth > 0 && !s.frames[s.depth-1].array
}

// skip reads inside a container that does not matter.
func (s *jsonScanner) skip(p []byte) []byte {
	for i, c := range p {
		switch c {
		case '"':
			s.beginString()
			return p[i+1:]
		case '{', '[':
			s.skipped++
		case '}', ']':
			s.skipped--
			if s.skipped == 0 {
				s.valueEnded()
				return p[i+1:]
			}
		}
	}
	return nil
}

func (s *jsonScanner) beginString() {
	s.inKey = s.expectKey && s.skipped == 0
	s.state, s.escape, s.escaped, s.length, s.lexed = jsonString, false, false, 0, 0
}

// text reads a string up to its end, an escape or the end of p.
func (s *jsonScanner) text(p []byte) []byte {
	if s.escape {
		s.escape, s.escaped = false, true
		s.length++
		return p[1:]
	}
	end := bytes.IndexByte(p, '"')
	run := p
	if end >= 0 {
		run = p[:end]
	}
	if escape := bytes.IndexByte(run, '\\'); escape >= 0 {
		s.keep(run[:escape])
		s.escape = true
		return p[escape+1:]
	}
	s.keep(run)
	if end < 0 {
		return nil
	}
	s.endString()
	return p[end+1:]
}

// keep notes part of a string, its bytes only where they are needed.
func (s *jsonScanner) keep(run []byte) {
	s.length += len(run)
	if (s.inKey || s.value.id) && s.lexed < len(s.lexeme) {
		s.lexed += copy(s.lexeme[s.lexed:], run)
	}
}

func (s *jsonScanner) endString() {
	if s.skipped > 0 {
		s.state = jsonSkipped
		return
	}
	s.state = jsonStructure
	whole := !s.escaped && s.length == s.lexed
	switch {
	case s.inKey:
		s.value = jsonMeaning{}
		if whole {
			s.value = meaningOf(s.frames[s.depth-1].at, s.lexeme[:s.lexed])
		}
	case s.value.content && s.length > 0:
		s.content = true
	case s.value.id && whole && s.id == nil:
		s.id = bytes.Clone(s.lexeme[:s.lexed])
	}
}

// digits reads a number up to its end or the end of p.
func (s *jsonScanner) digits(p []byte) []byte {
	for i, c := range p {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			s.endNumber()
			return p[i:]
		}
		if s.lexed < maxLexeme {
			s.lexeme[s.lexed] = c
		}
		s.lexed++
	}
	return nil
}

func (s *jsonScanner) endNumber() {
	s.state = jsonStructure
	if s.lexed > maxLexeme {
		return
	}
	if v, err := strconv.ParseFloat(string(s.lexeme[:s.lexed]), 64); err == nil {
		s.counts.set(s.value.number, v)
	}
}
