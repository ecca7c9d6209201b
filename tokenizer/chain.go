package tokenizer

import (
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// Where the key chain is cut is a function of the stream before the cut alone, so that
// a prompt which continues another one has all of its keys.
const (
	// Blocks are smallBlock long near the root, where prompts that share a system prompt
	// part ways, and grow to a growth-th of their position: what counts is precision
	// relative to the length that matches. largeBlock bounds the buffer.
	smallBlock = 512
	largeBlock = 64 << 10
	growth     = 16

	// A message's end is a cut too unless the open block is shorter than smallTail, or
	// than a tailGrowth-th of the position.
	smallTail  = 64
	tailGrowth = 64

	// freeKeys is how many keys a chain may have before cuts where a reply attaches
	// obey the same rule: without it, thousands of tiny turns would be a key each.
	freeKeys = 128
)

// chain cuts a stream of bytes into blocks and keys them. The zero value needs start.
type chain struct {
	blocks []Block
	key    uint64 // of the last block, or of the root

	// A position is a length in the stream, plus the weight of what is not text. The
	// open block began at begin and is full at end.
	pos, begin, end int
	notText         int    // the part of pos that is no text of the prompt
	tokens          int    // see Block.Tokens
	replyFrom       int    // position where the assistant message began, or -1
	buf             []byte // the open block
}

func (c *chain) start(key uint64, blocks []Block) {
	*c = chain{blocks: blocks, key: key, end: smallBlock, replyFrom: -1, buf: c.buf[:0]}
}

// write appends to the stream and counts it as text.
func (c *chain) write(b []byte) {
	for len(b) >= c.end-c.pos {
		n := c.end - c.pos
		c.pos = c.end
		if len(c.buf) == 0 {
			c.cut(b[:n])
		} else {
			c.buf = append(c.buf, b[:n]...)
			c.cut(c.buf)
		}
		b = b[n:]
	}
	c.buf = append(c.buf, b...)
	c.pos += len(b)
}

// writeByte is write for a single byte.
func (c *chain) writeByte(b byte) {
	c.buf = append(c.buf, b)
	if c.pos++; c.pos == c.end {
		c.cut(c.buf)
	}
}

// writeRune is write for a character.
func (c *chain) writeRune(r rune) {
	if c.end-c.pos <= utf8.UTFMax { // it may have to be cut in two
		var b [utf8.UTFMax]byte
		c.write(b[:utf8.EncodeRune(b[:], r)])
		return
	}
	before := len(c.buf)
	c.buf = utf8.AppendRune(c.buf, r)
	c.pos += len(c.buf) - before
}

// writeMark is writeByte for a byte that is no text of the prompt.
func (c *chain) writeMark(b byte) {
	c.notText++
	c.writeByte(b)
}

// weigh counts tokens that are not text, at a weight in the stream.
func (c *chain) weigh(tokens, weight int) {
	c.tokens += tokens
	c.notText += weight
	if c.pos += weight; c.pos >= c.end {
		c.cut(c.buf)
	}
}

// cut closes the open block, whose bytes are given, at the present position.
func (c *chain) cut(block []byte) {
	c.key = xxh3.HashSeed(block, c.key)
	text := c.written(block)
	c.blocks = append(c.blocks, Block{
		Key:     c.key,
		Bytes:   uint32(text.Bytes),
		Further: uint32(text.Further),
		Tokens:  uint32(text.Tokens),
		Reply:   c.replyFrom >= 0 && c.begin >= c.replyFrom,
	})
	c.buf = c.buf[:0]
	c.begin = c.pos
	c.end = c.pos + min(max(c.pos/growth, smallBlock), largeBlock)
}

// written is what the stream consists of, given the bytes of the open block.
func (c *chain) written(open []byte) Text {
	var closed Text
	if n := len(c.blocks); n > 0 {
		closed = c.blocks[n-1].Text()
	}
	bytes := c.pos - c.notText
	return Text{
		Bytes:   bytes,
		Further: closed.Further + min(furtherBytes(open), bytes-closed.Bytes),
		Tokens:  c.tokens,
	}
}

// messageEnd cuts where another message may follow.
func (c *chain) messageEnd() {
	if c.pos-c.begin >= max(smallTail, c.pos/tailGrowth) {
		c.cut(c.buf)
	}
}

// turnEnd cuts where a reply attaches: at a prompt's end, and thus before every
// assistant message.
func (c *chain) turnEnd() {
	if len(c.blocks) < freeKeys && c.pos > c.begin {
		c.cut(c.buf)
		return
	}
	c.messageEnd()
}
