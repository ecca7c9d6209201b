package tokenizer

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// Text is what a prompt, or the beginning of one, consists of.
type Text struct {
	Bytes   int // of text
	Further int // of them, about how many are not the first of their character
	Tokens  int // of what is not text, see Block.Tokens
}

func (t *Text) add(u Text, times int) {
	t.Bytes += times * u.Bytes
	t.Further += times * u.Further
	t.Tokens += times * u.Tokens
}

// Ratio is how many tokens a byte of text stands for: the first of a character,
// and each further one. Two numbers tell scripts apart well enough, since English
// and code have no further bytes, Cyrillic has one to a character, and Chinese two.
type Ratio struct{ First, Further float32 }

// usualBytes is how many bytes make a token until something is learned: common
// vocabularies have 3.5 to 4.5 of English and code.
const usualBytes = 4

// Tokens estimates how many tokens a text has. Longer texts never have fewer.
func (r Ratio) Tokens(t Text) int {
	return int(float64(t.Bytes-t.Further)*float64(r.First)+float64(t.Further)*float64(r.Further)) + t.Tokens
}

const (
	ratioCells = 64
	// A token has at least minBytes and at most maxBytes of text, or maxFurther of
	// further bytes alone.
	minBytes, maxBytes, maxFurther = 1, 8, 32
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
	c.learn(float64(t.Bytes-t.Further)/usualBytes, float64(t.Further)/usualBytes, ofText)
	c.publish()
}

// learn takes in an answer. It is given how many tokens the first and the further
// bytes would usually be, and how many all really were. It fits two multiples u and
// v so that u*first + v*further comes close to the truth, relatively: by least
// squares over x1 = first/tokens and x2 = further/tokens, where u*x1 + v*x2 should
// be 1. Old answers fade.
func (c *ratioCell) learn(first, further, tokens float64) {
	if c.learned == [2]float64{} {
		c.learned = [2]float64{1, 1}
	}
	estimate := c.learned[0]*first + c.learned[1]*further
	tokens = max(estimate/surprise, min(tokens, estimate*surprise))
	x1, x2 := first/tokens, further/tokens
	for i, term := range [...]float64{x1 * x1, x1 * x2, x2 * x2, x1, x2} {
		c.sums[i] += term - c.sums[i]/pace
	}
	const w = usualWeight
	s11, s12, s22, s1, s2 := c.sums[0]+w, c.sums[1], c.sums[2]+w, c.sums[3]+w, c.sums[4]+w
	determinant := s11*s22 - s12*s12 // at least w*w
	c.learned[0] = bounded((s1*s22-s2*s12)/determinant, maxBytes)
	c.learned[1] = bounded((s2*s11-s1*s12)/determinant, maxFurther)
}

func bounded(multiple, most float64) float64 {
	return max(usualBytes/most, min(multiple, float64(usualBytes)/minBytes))
}

// publish shows what was learned if it is news.
func (c *ratioCell) publish() {
	known := c.known()
	learned := Ratio{float32(c.learned[0] / usualBytes), float32(c.learned[1] / usualBytes)}
	if differ(known.First, learned.First) || differ(known.Further, learned.Further) {
		c.published.Store(uint64(math.Float32bits(learned.First))<<32 | uint64(math.Float32bits(learned.Further)))
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
