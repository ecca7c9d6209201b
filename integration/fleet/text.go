package fleet

import (
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// text is how long a token of a kind of text is, in hundredths of a byte.
type text int

// The template's own tokens are no text. A router counts them by convention.
const template text = 0

// textOf is the kind of text in a segment. Schemas are dense, prose is not; no
// token is as long as the router takes all of them to be.
func textOf(role string) text {
	switch role {
	case workload.Tools:
		return 370
	case workload.System, workload.User:
		return 450
	default: // answers, and prompts that are known as tokens only
		return 430
	}
}

// usual is the ratio that nothing has taught yet.
var usual = new(tokenizer.Ratios).Of(model)

// The tokenizer's rules for cutting text, in bytes.
const (
	tokenWeight = 4
	smallBlock  = 512
	largeBlock  = 64 << 10
	growth      = 16
	smallTail   = 64
	tailGrowth  = 64
	freeKeys    = 128
)

// cutter cuts text into blocks. Where it cuts depends on the text before alone.
type cutter struct {
	hasher     hasher
	blocks     []tokenizer.Block
	hundredths int // of bytes of text so far
	tokens     int // so far, that are no text
	begin, end int // of the open block
	replyFrom  int // where the reply began, or -1
}

// textBlocks are the blocks that a router sees, and the whole text.
func textBlocks(spans []span) ([]tokenizer.Block, tokenizer.Text) {
	c := cutter{
		hasher: hasher{state: 0x7e87}, blocks: make([]tokenizer.Block, 0, 64),
		end: smallBlock, replyFrom: -1,
	}
	for _, s := range spans {
		if !s.reply {
			c.replyFrom = -1
		} else if c.replyFrom < 0 {
			c.replyFrom = c.position()
		}
		c.add(s)
		open := c.position() - c.begin
		if s.end == turnEnd && len(c.blocks) < freeKeys && open > 0 ||
			s.end != inside && open >= max(smallTail, c.position()/tailGrowth) {
			c.cut()
		}
	}
	return c.blocks, tokenizer.Text{Bytes: c.hundredths / 100, Tokens: c.tokens}
}

// position is where the cutter is, in bytes.
func (c *cutter) position() int { return c.hundredths/100 + tokenWeight*c.tokens }

// add appends a span and cuts where blocks are full, after the token that
// fills them.
func (c *cutter) add(s span) {
	length := int(s.text)
	if s.text == template {
		length = 100 * tokenWeight
	}
	for id, left := s.id, s.tokens; left > 0; {
		open := 100*(c.end-tokenWeight*c.tokens) - c.hundredths
		n := min(left, (open+length-1)/length)
		c.hasher.add(id, n)
		if s.text == template {
			c.tokens += n
		} else {
			c.hundredths += n * length
		}
		if c.position() >= c.end {
			c.cut()
		}
		id += uint64(n)
		left -= n
	}
}

func (c *cutter) cut() {
	c.blocks = append(c.blocks, tokenizer.Block{
		Key:    c.hasher.cut(),
		Bytes:  uint32(c.hundredths / 100),
		Tokens: uint32(c.tokens),
		Reply:  c.replyFrom >= 0 && c.begin >= c.replyFrom,
	})
	c.begin = c.position()
	c.end = c.begin + min(max(c.begin/growth, smallBlock), largeBlock)
}

// estimate turns text into tokens.
func (r *Request) estimate(ratio tokenizer.Ratio) {
	r.Blocks = r.Blocks[:0]
	for i := range r.Texts {
		b := &r.Texts[i]
		r.Blocks = append(r.Blocks, selection.Block{Key: b.Key, Tokens: uint32(ratio.Tokens(b.Text())), Reply: b.Reply})
	}
	r.Estimated = ratio.Tokens(r.Text)
}
