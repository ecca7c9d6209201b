package tokenizer

import (
	"encoding/binary"
	"math/bits"
)

// Of the text between two cuts a piece is looked at every so many bytes: scripts
// change slowly, and to look at all of it would take a tenth of the time of parsing.
const (
	scriptPiece  = 32
	scriptStride = 1024
)

// furtherBytes estimates how many bytes of a text are not the first one of their
// character. Marks are none of them.
func furtherBytes(text []byte) int {
	found, seen := 0, 0
	for rest := text; len(rest) >= scriptPiece; {
		stretch := rest[:min(scriptStride, len(rest))]
		rest = rest[len(stretch):]
		// From the middle, as messages begin with tags and roles.
		found += furtherInPiece((*[scriptPiece]byte)(stretch[(len(stretch)-scriptPiece)/2:]))
		seen += scriptPiece
	}
	if seen > 0 {
		return int(uint32(found) * uint32(len(text)) / uint32(seen)) // of at most 64 KiB
	}
	for _, c := range text {
		if c&0xc0 == 0x80 {
			found++
		}
	}
	return found
}

// furtherInPiece counts the bytes whose highest bits are 10, those of four words side
// by side.
func furtherInPiece(b *[scriptPiece]byte) int {
	const high = 0x8080808080808080
	w0, w1 := binary.LittleEndian.Uint64(b[0:8]), binary.LittleEndian.Uint64(b[8:16])
	w2, w3 := binary.LittleEndian.Uint64(b[16:24]), binary.LittleEndian.Uint64(b[24:32])
	return bits.OnesCount64(w0&^(w0<<1)&high | w1&^(w1<<1)&high>>1 | w2&^(w2<<1)&high>>2 | w3&^(w3<<1)&high>>3)
}
