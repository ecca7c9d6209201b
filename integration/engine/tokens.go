package engine

import (
	"math/bits"
	"strings"
)

// The simulated tokenizer cuts text into pieces of one to seven bytes. A piece
// begins at a space or inside a word, never runs into the next space, and its
// length depends on its first two bytes alone. So tokens align with no byte size,
// text gives the same tokens wherever it begins a message, and text that ends
// where a token ends gives the same tokens as when it went on.

// tokenOf is the identity of a piece of text.
func tokenOf(piece string) uint64 {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3 // FNV-1a
	h := uint64(offset)
	for i := range len(piece) {
		h = (h ^ uint64(piece[i])) * prime
	}
	return mix(h)
}

// mix spreads a number over all its bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pieceLen is the length of the first piece of a text that is not empty.
func pieceLen(text string) int {
	if len(text) == 1 {
		return 1
	}
	want := 2 + int(mix(uint64(text[0])<<8|uint64(text[1]))%6)
	for i := 1; i < min(want, len(text)); i++ {
		if text[i] == ' ' || text[i] == '\n' {
			return i
		}
	}
	return min(want, len(text))
}

// CountTokens is the number of tokens in a text.
func CountTokens(text string) (n int) {
	for ; text != ""; n++ {
		text = text[pieceLen(text):]
	}
	return n
}

// words is what simulated models say. Different lengths and beginnings make
// different numbers of tokens.
var words = strings.Fields(`
	the of to a in is for and that with this on as are be it by from an or at not was if we can when file
	value error line test type function change result list call name path return data user check state
	module string number request build server client option command version output default directory
	argument interface package variable response connection configuration implementation performance
	first second before after again because should would could another between however therefore while
	read write open close start stop find replace update remove create search compare measure follow
	small large empty next last every other same different several possible available necessary`)

// Text is a text of exactly that many tokens, the same for the same seed.
func Text(seed uint64, tokens int) string {
	text, _ := compose(seed, tokens)
	return text
}

// compose makes a text of that many tokens and says where each of them ends.
func compose(seed uint64, tokens int) (text string, ends []int) {
	var b strings.Builder
	b.Grow(tokens * 5)
	ends = make([]int, 0, tokens)
	for length := 0; len(ends) < tokens; {
		seed += 0x9e3779b97f4a7c15 // the next number of splitmix64
		word := words[mix(seed)%uint64(len(words))]
		if length > 0 {
			word = " " + word
		}
		for word != "" && len(ends) < tokens {
			n := pieceLen(word)
			b.WriteString(word[:n])
			word = word[n:]
			length += n
			ends = append(ends, length)
		}
	}
	return b.String(), ends
}

// Chain turns a sequence of tokens into the chained keys of its full blocks:
// equal keys mean equal tokens from the beginning on. It only grows, so the keys
// of an earlier state stay valid as a prefix of the later ones.
type Chain struct {
	size   int
	tokens int
	state  uint64
	keys   []uint64
}

// NewChain starts an empty sequence for blocks of that many tokens. Sequences
// with different roots share no keys.
func NewChain(root uint64, blockSize int) *Chain {
	return &Chain{size: blockSize, state: mix(root ^ 0x6a09e667f3bcc908)}
}

// Add appends a token.
func (c *Chain) Add(token uint64) {
	high, low := bits.Mul64(c.state^0xa0761d6478bd642f, token^0xe7037ed1a0b428db)
	c.state = mix(high ^ low)
	c.tokens++
	if c.tokens%c.size == 0 {
		c.keys = append(c.keys, c.state|1) // never 0
	}
}

// AddText appends the tokens of a text.
func (c *Chain) AddText(text string) {
	for text != "" {
		n := pieceLen(text)
		c.Add(tokenOf(text[:n]))
		text = text[n:]
	}
}

// Len is the number of tokens, Keys the keys of the full blocks among them. Keys
// must not be changed.
func (c *Chain) Len() int { return c.tokens }

// Keys are the keys of the full blocks so far.
func (c *Chain) Keys() []uint64 { return c.keys[:len(c.keys):len(c.keys)] }
