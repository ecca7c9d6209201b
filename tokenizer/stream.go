package tokenizer

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// The stream that is hashed is the prompt in the order in which engines render it.
// Every part begins with mark and a tag that says what follows up to the next mark.
// No part contains mark, which never occurs in UTF-8, so that different conversations
// never make the same stream.
const mark = 0xff

type tag byte

const (
	tagOptions   tag = 'O' // template options, before everything else
	tagTool      tag = 'T' // a tool's name
	tagDetail    tag = 'D' // a tool's description
	tagSchema    tag = 'S' // a tool's parameters, as JSON
	tagDocument  tag = 'd' // a retrieved document, as JSON
	tagMessage   tag = 'M' // a message's role
	tagName      tag = 'N' // a message's author
	tagText      tag = 't' // text of a message or a prompt
	tagRefusal   tag = 'r'
	tagCall      tag = 'C' // name of a tool called
	tagArguments tag = 'A' // its arguments, as JSON
	tagRawArgs   tag = 'a' // its arguments, when they are not JSON
	tagMedia     tag = 'I' // image, audio, video, file: its hash
	tagTokens    tag = '#' // token ids
	tagSuffix    tag = 'X' // text after the place to fill in
	tagJSON      tag = 'J' // anything else, as JSON
)

// Tokens that stand by convention for what has no text. Engines differ by model and
// size; learning bytes per token absorbs a constant error.
const (
	messageTokens = 4 // role header and end marker, as in ChatML and Llama 3
	imageTokens   = 768
	audioTokens   = 750 // 30 s at 25 per second
	videoTokens   = 4096
	fileTokens    = 1024

	// tokenWeight is the weight of a token in the stream: about the text of one.
	tokenWeight = 4
)

// stream writes tagged parts into a chain.
type stream struct {
	chain
	dirty   bool // texts may contain mark
	scratch []byte
}

func (s *stream) tag(t tag) {
	s.buf = append(s.buf, mark, byte(t))
	s.weigh(0, 2)
}

// put writes text that is not escaped.
func (s *stream) put(b []byte) {
	if s.dirty {
		s.putClean(b)
		return
	}
	s.write(b)
}

// putClean writes text in which another byte that is no UTF-8 either stands for mark.
func (s *stream) putClean(b []byte) {
	for {
		i := bytes.IndexByte(b, mark)
		if i < 0 {
			s.write(b)
			return
		}
		s.write(b[:i])
		s.writeByte(mark - 1)
		b = b[i+1:]
	}
}

// unescaped writes the text that a raw JSON string stands for.
func (s *stream) unescaped(raw []byte) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			s.put(raw)
			return
		}
		s.put(raw[:i])
		raw = raw[i:]
		for len(raw) > 0 && raw[0] == '\\' {
			if len(raw) > 1 && simpleEscapes[raw[1]] != 0 { // as most are
				s.writeByte(simpleEscapes[raw[1]])
				raw = raw[2:]
				continue
			}
			r, width := decodeEscape(raw)
			if width == 0 {
				return
			}
			s.writeRune(r)
			raw = raw[width:]
		}
	}
}

// media writes a part for content that is known by the hash of the raw JSON string
// which holds it or names it. The wrapping of a data URL does not count.
func (s *stream) media(raw []byte, tokens int) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		s.scratch = appendUnescaped(s.scratch[:0], raw)
		raw = s.scratch
	}
	if bytes.HasPrefix(raw, []byte("data:")) {
		if i := bytes.IndexByte(raw, ','); i >= 0 {
			raw = raw[i+1:]
		}
	}
	h := xxh3.Hash(raw)
	s.tag(tagMedia)
	for range 10 {
		s.writeMark(byte(h & 0x7f))
		h >>= 7
	}
	s.weigh(tokens, tokens*tokenWeight)
}

// tokenIDs writes the numbers of a raw JSON array. A number that the end of the text
// may have cut short is left out.
func (s *stream) tokenIDs(raw []byte) {
	s.tag(tagTokens)
	for i := 0; i < len(raw); i++ {
		id, first := uint32(0), i
		for ; i < len(raw) && raw[i]-'0' <= 9; i++ {
			id = id*10 + uint32(raw[i]-'0')
		}
		if first < i && i < len(raw) {
			s.tokenID(id)
		}
	}
}

// tokenID writes one token id as four bytes of seven bits, enough for any vocabulary,
// so that none of them is mark.
func (s *stream) tokenID(id uint32) {
	s.tokens++
	sevens := id&0x7f | id<<1&0x7f00 | id<<2&0x7f0000 | id<<3&0x7f000000
	s.buf = binary.LittleEndian.AppendUint32(s.buf, sevens)
	s.notText += tokenWeight
	if s.pos += tokenWeight; s.pos >= s.end {
		s.cut(s.buf)
	}
}
