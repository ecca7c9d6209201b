package tokenizer

import (
	"encoding/binary"
	"math/bits"
)

// nonASCII counts the bytes of a text that are not ASCII.
func nonASCII(text []byte) (n int) {
	for ; len(text) >= 64; text = text[64:] {
		b := (*[64]byte)(text)
		n += highBits((*[32]byte)(b[:32])) + highBits((*[32]byte)(b[32:]))
	}
	for _, c := range text {
		n += int(c >> 7)
	}
	return n
}

// highBits counts the bytes that have their highest bit set, those of four words
// side by side.
func highBits(b *[32]byte) int {
	const high = 0x8080808080808080
	return bits.OnesCount64(binary.LittleEndian.Uint64(b[:])&high |
		binary.LittleEndian.Uint64(b[8:])&high>>1 |
		binary.LittleEndian.Uint64(b[16:])&high>>2 |
		binary.LittleEndian.Uint64(b[24:])&high>>3)
}
