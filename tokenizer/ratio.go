package tokenizer

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// Text is what a prompt, or the beginning of one, consists of.
type Text struct {
	Bytes    int // of text
	NonASCII int // of them, bytes that are not ASCII
	Tokens   int // of what is not text, see Block.Tokens
}

func (t *Text) add(u Text, times int) {
	t.Bytes += times * u.Bytes
	t.NonASCII += times * u.NonASCII
	t.Tokens += times * u.Tokens
}

// Ratio is how many tokens a byte of text stands for. It is one for ASCII and
// one for everything else, which tells scripts apart well enough: a model's
// vocabulary treats English and code alike, but takes two to five bytes of
// Chinese, Cyrillic or Hindi for a token.
type Ratio struct{ ASCII, Other float32 }

// usualBytes is how many bytes make a token until something is learned: common
// vocabularies have 3.5 to 4.5 of English and code.
const usualBytes = 4

// Tokens estimates how many tokens a text has. Longer texts never have fewer.
func (r Ratio) Tokens(t Text) int {
	return int(float64(t.Bytes-t.NonASCII)*float64(r.ASCII)+float64(t.NonASCII)*float64(r.Other)) + t.Tokens
}

const (
	ratioCells = 64
	// A token has at least minBytes and at most maxBytes of text.
	minBytes, maxBytes = 1, 8
	// surprise is by which factor, at most, an answer may say that the estimate
	// was wrong. What is further off counts as much.
	surprise = 1.6
	// pace is how many answers are averaged: prompts that differ by 15 % from each
	// other leave an error of 1 %. What was usual counts like a part of an answer.
	pace, usualWeight = 128, 0.25
	// news is how much, relatively, a ratio must have changed to be published.
	// Each time it is, the same prompt is counted a little differently.
	news = 0.03
	// minText is how many bytes teach anything: in short prompts the chat
	// template outweighs the text.
	minText = 256
	// maxOther is the largest share of the prompt that may not be text.
	maxOther = 1. / 8
)

// Ratios learn the Ratio of each model from answers that tell the length of
// their prompt. Models share cells by hash, so memory is fixed whatever names
// clients send. The zero value is ready; methods are safe for concurrent use.
type Ratios [ratioCells]ratioCell

type ratioCell struct {
	published atomic.Uint64 // a Ratio, 0 for the usual one

	mu      sync.Mutex
	learned [2]float64 // multiples of the usual ratio, 0 before the first answer
	sums    [5]float64 // over answers, see learn
}

// Of returns the ratio of a model. It takes no lock.
func (r *Ratios) Of(model string) Ratio { return r.cell(model).known() }

// Learn takes in that a prompt of this text, read to its end, had so many
// tokens in all. Counts that cannot be true of the text are ignored.
func (r *Ratios) Learn(model string, t Text, tokens int) {
	ofText, bytes := float64(tokens-t.Tokens), float64(t.Bytes)
	if t.Bytes < minText || float64(t.Tokens) > maxOther*float64(tokens) ||
		ofText*minBytes > bytes*1.25 || ofText*maxBytes*1.25 < bytes {
		return
	}
	c := r.cell(model)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn(float64(t.Bytes-t.NonASCII)/usualBytes, float64(t.NonASCII)/usualBytes, ofText)
	c.publish()
}

// learn fits two multiples u and v of the usual ratio so that u*ascii + v*other
// comes close to the true number of tokens, relatively: least squares over x1 =
// ascii/tokens and x2 = other/tokens, whose sum weighted by u and v should be 1,
// in which old answers fade.
func (c *ratioCell) learn(ascii, other, tokens float64) {
	if c.learned == [2]float64{} {
		c.learned = [2]float64{1, 1}
	}
	estimate := c.learned[0]*ascii + c.learned[1]*other
	tokens = max(estimate/surprise, min(tokens, estimate*surprise))
	x1, x2 := ascii/tokens, other/tokens
	for i, term := range [...]float64{x1 * x1, x1 * x2, x2 * x2, x1, x2} {
		c.sums[i] += term - c.sums[i]/pace
	}
	const w = usualWeight
	s11, s12, s22, s1, s2 := c.sums[0]+w, c.sums[1], c.sums[2]+w, c.sums[3]+w, c.sums[4]+w
	determinant := s11*s22 - s12*s12 // at least w*w
	c.learned[0] = bounded((s1*s22 - s2*s12) / determinant)
	c.learned[1] = bounded((s2*s11 - s1*s12) / determinant)
}

func bounded(multiple float64) float64 {
	return max(float64(usualBytes)/maxBytes, min(multiple, float64(usualBytes)/minBytes))
}

// publish shows what was learned if it is news.
func (c *ratioCell) publish() {
	known := c.known()
	learned := Ratio{float32(c.learned[0] / usualBytes), float32(c.learned[1] / usualBytes)}
	if differ(known.ASCII, learned.ASCII) || differ(known.Other, learned.Other) {
		c.published.Store(uint64(math.Float32bits(learned.ASCII))<<32 | uint64(math.Float32bits(learned.Other)))
	}
}

func differ(known, learned float32) bool {
	return math.Abs(float64(learned/known)-1) > news
}

func (c *ratioCell) known() Ratio {
	bits := c.published.Load()
	if bits == 0 {
		return Ratio{1. / usualBytes, 1. / usualBytes}
	}
	return Ratio{math.Float32frombits(uint32(bits >> 32)), math.Float32frombits(uint32(bits))}
}

func (r *Ratios) cell(model string) *ratioCell {
	return &r[xxh3.HashString(model)%ratioCells]
}
