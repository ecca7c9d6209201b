package fleet

import (
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// text is how long a token of a kind of text is, in hundredths of a byte.
type text int

// The template's own tokens are no text: a router does not see them.
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

// bytesPerToken is what the router goes by until it has learned better.
const bytesPerToken = 4

// The tokenizer's rules for cutting text, in bytes.
const (
	smallBlock = 512
	largeBlock = 64 << 10
	growth     = 16
	smallTail  = 64
	tailGrowth = 64
	freeKeys   = 128
)

// cutter cuts text into blocks. Where it cuts depends on the text before alone.
type cutter struct {
	hasher     hasher
	blocks     []selection.Block
	hundredths int // position, in hundredths of a byte
	begin, end int // of the open block, in bytes
	replyFrom  int // where the reply began, or -1
}

// textBlocks are the blocks that a router sees, and how many tokens it takes
// the prompt to have.
func textBlocks(spans []span) (blocks []selection.Block, tokens int) {
	c := cutter{
		hasher: hasher{state: 0x7e87}, blocks: make([]selection.Block, 0, 64),
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
	return c.blocks, c.position() / bytesPerToken
}

func (c *cutter) position() int { return c.hundredths / 100 }

// add appends a span and cuts where blocks are full, after the token that
// fills them.
func (c *cutter) add(s span) {
	for id, left := s.id, s.tokens; left > 0; {
		n := left
		if s.text > 0 {
			n = min(left, (100*c.end-c.hundredths+int(s.text)-1)/int(s.text))
		}
		c.hasher.add(id, n)
		c.hundredths += n * int(s.text)
		if c.position() >= c.end {
			c.cut()
		}
		id += uint64(n)
		left -= n
	}
}

func (c *cutter) cut() {
	c.blocks = append(c.blocks, selection.Block{
		Key:    c.hasher.cut(),
		Tokens: uint32(c.position() / bytesPerToken),
		Reply:  c.replyFrom >= 0 && c.begin >= c.replyFrom,
	})
	c.begin = c.position()
	c.end = c.begin + min(max(c.begin/growth, smallBlock), largeBlock)
}
