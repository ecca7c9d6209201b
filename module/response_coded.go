package module

import "github.com/seed5db0839e/caddy-cache-aware/tokenizer"

// How much of a compressed answer is read. The id comes at its beginning, and
// of short answers the rest is worth reading too.
const (
	maxCodedAnswer   = 32 << 10
	maxDecodedAnswer = 256 << 10
)

// codedAnswer is the beginning of a compressed answer, kept to be decoded aside
// while the answer itself passes as it comes.
type codedAnswer struct {
	codings string
	kept    []byte
	whole   bool // nothing of the answer is missing in kept
	tried   int  // bytes of kept when they were last decoded
	given   int  // decoded bytes that decode has returned
}

func newCodedAnswer(codings string) *codedAnswer {
	return &codedAnswer{codings: codings, whole: true}
}

// add keeps the next piece of the answer as far as there is room.
func (c *codedAnswer) add(p []byte) {
	room := maxCodedAnswer - len(c.kept)
	if len(p) > room {
		p, c.whole = p[:room], false
	}
	c.kept = append(c.kept, p...)
}

// due tells whether so much has come since the last time that decoding from the
// beginning again costs little in proportion.
func (c *codedAnswer) due() bool {
	return len(c.kept)-c.tried > c.tried/8
}

// decode returns what has become readable since the last time.
func (c *codedAnswer) decode() []byte {
	if len(c.kept) == c.tried {
		return nil
	}
	c.tried = len(c.kept)
	text, _, err := tokenizer.Decode(c.codings, c.kept, maxDecodedAnswer)
	if err != nil || len(text) < c.given {
		return nil
	}
	text = text[c.given:]
	c.given += len(text)
	return text
}
