package module

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
)

// responseScanner reads an answer as it passes and notes what it says about
// its cost. It keeps nothing of the answer but numbers and an id, and gives the
// same result however the answer is cut into pieces.
type responseScanner struct {
	json   jsonScanner
	form   responseForm
	events int          // streamed events with content
	coded  *codedAnswer // nil if the answer is not compressed

	line    lineState
	matched int // bytes of dataField matched at a line's beginning
}

// responseForm is how an answer is laid out.
type responseForm uint8

const (
	formOpaque responseForm = iota // unknown: not read
	formJSON                       // one JSON text
	formLines                      // one JSON text a line, as Ollama streams
	formEvents                     // server-sent events
)

type lineState uint8

const (
	lineStart lineState = iota
	lineData
	lineOther
)

const dataField = "data:"

// newResponseScanner returns a scanner for an answer with this header.
func newResponseScanner(header http.Header) *responseScanner {
	s := &responseScanner{form: formOf(header)}
	if codings := header.Get("Content-Encoding"); codings != "" && codings != "identity" {
		s.coded = newCodedAnswer(codings)
	}
	// TGI reports in headers, times in milliseconds.
	s.headerCount(header, "X-Prompt-Tokens", countPromptTokens)
	s.headerCount(header, "X-Generated-Tokens", countCompletionTokens)
	s.headerCount(header, "X-Queue-Time", countQueueMS)
	return s
}

func (s *responseScanner) headerCount(header http.Header, name string, n usageCount) {
	if values := header[name]; len(values) > 0 {
		if v, err := strconv.ParseFloat(values[0], 64); err == nil {
			s.json.counts.set(n, v)
		}
	}
}

func formOf(header http.Header) responseForm {
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/event-stream":
		return formEvents
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines":
		return formLines
	case "application/json":
		return formJSON
	}
	return formOpaque
}

// feed reads the next piece of the answer. Of a compressed one it reads until it
// knows what cannot wait for the end.
func (s *responseScanner) feed(p []byte) {
	if s.coded == nil {
		s.read(p)
		return
	}
	if s.form == formOpaque {
		return
	}
	s.coded.add(p)
	if urgent := s.json.id == nil || s.form != formJSON && !s.firstToken(); urgent && s.coded.due() {
		s.read(s.coded.decode())
	}
}

// end reads what feed has left, once no more is to come.
func (s *responseScanner) end() {
	if s.coded != nil && s.coded.whole {
		s.read(s.coded.decode())
	}
}

func (s *responseScanner) read(p []byte) {
	switch s.form {
	case formJSON:
		s.json.feed(p)
	case formLines:
		s.feedLines(p)
	case formEvents:
		s.feedEvents(p)
	}
}

func (s *responseScanner) feedLines(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.json.feed(p)
			return
		}
		s.json.feed(p[:end+1])
		s.endEvent()
		p = p[end+1:]
	}
}

func (s *responseScanner) feedEvents(p []byte) {
	for len(p) > 0 {
		if s.line == lineStart {
			p = s.beginLine(p)
			continue
		}
		end := bytes.IndexByte(p, '\n')
		run := p
		if end >= 0 {
			run = p[:end+1]
		}
		if s.line == lineData {
			s.json.feed(run)
		}
		if end >= 0 {
			s.line, s.matched = lineStart, 0
		}
		p = p[len(run):]
	}
}

// beginLine reads the first byte of p, which belongs to a line of which only
// the beginning of dataField has been read.
func (s *responseScanner) beginLine(p []byte) []byte {
	switch c := p[0]; {
	case c == '\n':
		if s.matched == 0 {
			s.endEvent()
		}
		s.matched = 0
	case c == dataField[s.matched]:
		s.matched++
		if s.matched == len(dataField) {
			s.line = lineData
			if s.json.ended {
				s.endEvent()
			}
		}
	case c == '\r' && s.matched == 0:
	default:
		s.line = lineOther
	}
	return p[1:]
}

func (s *responseScanner) endEvent() {
	if s.json.content {
		s.events++
	}
	s.json.reset()
}

// firstToken tells whether a streamed answer has begun to carry content.
func (s *responseScanner) firstToken() bool {
	return s.form != formJSON && (s.events > 0 || s.json.content)
}

// usage returns what has been reported so far, if anything.
func (s *responseScanner) usage() (usage, bool) {
	streamed := s.events
	if s.form != formJSON && s.json.content {
		streamed++
	}
	u := s.json.counts.usage(streamed)
	u.responseID = string(s.json.id)
	return u, u.known()
}
