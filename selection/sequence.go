package selection

import "sort"

// sequence is a prompt and what was generated after it.
type sequence struct {
	blocks  []Block
	tail    uint32 // tokens generated
	doubted bool   // it may be lost
}

func (q *sequence) tokens() uint32 { return chainTokens(q.blocks) + q.tail }

// common is how many leading tokens of a prompt the sequence holds. They go
// beyond its own prompt if the other one goes on with an answer.
func (q *sequence) common(blocks []Block) uint32 {
	n := commonBlocks(q.blocks, blocks)
	prompt := chainTokens(blocks[:n])
	if n == 0 || n < len(q.blocks) {
		return prompt
	}
	end := n
	for end < len(blocks) && blocks[end].Reply {
		end++
	}
	return prompt + min(q.tail, chainTokens(blocks[:end])-prompt)
}

// contains tells whether the prompt begins with all of the other's.
func (q *sequence) contains(other *sequence) bool {
	return commonBlocks(q.blocks, other.blocks) == len(other.blocks)
}

// commonBlocks is how many leading blocks two chains share. A key names all that
// comes before it too, so where two are equal all before them are.
func commonBlocks(a, b []Block) int {
	return sort.Search(min(len(a), len(b)), func(i int) bool { return a[i].Key != b[i].Key })
}

// chainTokens is the number of tokens in a chain.
func chainTokens(blocks []Block) uint32 {
	if len(blocks) == 0 {
		return 0
	}
	return blocks[len(blocks)-1].Tokens
}
