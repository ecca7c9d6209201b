package engine

import "math/bits"

// keyIndex finds blocks by the key of their content. It chains the blocks
// themselves: a cache that is full replaces a key with every block that it takes,
// which slows a map down to the search for its own gaps.
type keyIndex struct {
	heads []int32 // first block of each chain, 0 for none
	shift uint
}

func newKeyIndex(blocks int) keyIndex {
	size := bits.Len(uint(blocks))
	return keyIndex{heads: make([]int32, 1<<size), shift: uint(64 - size)}
}

func (x keyIndex) head(key uint64) *int32 { return &x.heads[key*0x9e3779b97f4a7c15>>x.shift] }

// find returns the block with this key, 0 for none.
func (x keyIndex) find(blocks []block, key uint64) int32 {
	if key == 0 {
		return 0
	}
	b := *x.head(key)
	for b != 0 && blocks[b].key != key {
		b = blocks[b].chain
	}
	return b
}

// add gives a block without a key one that no other has.
func (x keyIndex) add(blocks []block, b int32, key uint64) {
	head := x.head(key)
	blocks[b].key, blocks[b].chain = key, *head
	*head = b
}

// remove takes a block's key away, if it has one.
func (x keyIndex) remove(blocks []block, b int32) {
	key := blocks[b].key
	if key == 0 {
		return
	}
	at := x.head(key)
	for *at != b {
		at = &blocks[*at].chain
	}
	*at, blocks[b].key = blocks[b].chain, 0
}

func (x keyIndex) clear() { clear(x.heads) }
