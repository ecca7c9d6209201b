package workload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Recording reads what `caddy cache-aware record` wrote: Mooncake's JSON lines,
// with blocks of different lengths and a mark on those that are earlier answers.
// docs/trace-format.md describes it.
type Recording struct {
	Name string
}

type recordedLine struct {
	Timestamp float64  `json:"timestamp"` // milliseconds
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	HashIDs   []uint64 `json:"hash_ids"`
	Lengths   []int    `json:"block_lengths"`
	Replies   []int    `json:"reply_blocks"`
}

// longestPrompt is the most tokens that a line may claim.
const longestPrompt = 1 << 28

func (l *recordedLine) check() error {
	switch {
	case l.Input < 1 || l.Input > longestPrompt:
		return fmt.Errorf("input_length is %d, want 1 to %d", l.Input, longestPrompt)
	case l.Output > longestPrompt:
		return fmt.Errorf("output_length is %d, want at most %d", l.Output, longestPrompt)
	case len(l.Lengths) != len(l.HashIDs):
		return fmt.Errorf("%d block_lengths for %d hash_ids", len(l.Lengths), len(l.HashIDs))
	}
	total := 0
	for _, n := range l.Lengths {
		if n < 0 || n > l.Input-total {
			return fmt.Errorf("block_lengths %v do not fit into an input_length of %d", l.Lengths, l.Input)
		}
		total += n
	}
	for _, i := range l.Replies {
		if i < 0 || i >= len(l.HashIDs) {
			return fmt.Errorf("reply_blocks has %d, want 0 to %d", i, len(l.HashIDs)-1)
		}
	}
	return nil
}

// Read makes an open workload of a recording. Every request is a session of its
// own, at its own time.
func (r Recording) Read(from io.Reader) (*Workload, error) {
	var lines []recordedLine
	err := eachLine(from, func(raw []byte) error {
		var line recordedLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		lines = append(lines, line)
		return errors.Join(checkTimestamp(line.Timestamp), line.check())
	})
	if err != nil {
		return nil, fmt.Errorf("reading recording: %w", err)
	}
	slices.SortStableFunc(lines, func(a, b recordedLine) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	w := &Workload{Name: r.Name}
	known := blockNames{lengths: map[uint64]int{}, replies: map[uint64]uint64{}}
	for _, line := range lines {
		known.learn(&line)
	}
	clients := map[uint64]uint64{}
	for i, line := range lines {
		w.Sessions = append(w.Sessions, Session{
			Client: client(&line, uint64(i), clients),
			Start:  time.Duration((line.Timestamp - lines[0].Timestamp) * float64(time.Millisecond)),
			Turns: []Turn{{
				Fresh:  true,
				Added:  known.segments(&line, uint64(i)),
				Answer: Segment{known.answer(&line, uint64(i)), Assistant, max(1, line.Output)},
			}},
		})
	}
	return w, nil
}

// client tells which conversation a prompt belongs to: that of the longest earlier
// prompt which it continues, by the last blocks of earlier prompts.
func client(line *recordedLine, number uint64, last map[uint64]uint64) uint64 {
	found := number + 1
	for _, id := range slices.Backward(line.HashIDs) {
		if c, ok := last[id]; ok {
			found = c
			break
		}
	}
	if n := len(line.HashIDs); n > 0 {
		last[line.HashIDs[n-1]] = found
	}
	return found
}

// blockNames is what the lines of a recording say of the same blocks.
type blockNames struct {
	// lengths of blocks, as on their first appearance: lines may differ a little,
	// since the router estimates them, but equal prefixes are equally long.
	lengths map[uint64]int
	// replies are the first reply that follows a prompt, by the prompt's last block.
	replies map[uint64]uint64
}

func (b *blockNames) learn(line *recordedLine) {
	for i, id := range line.HashIDs {
		if _, ok := b.lengths[id]; !ok {
			b.lengths[id] = line.Lengths[i]
		}
	}
	for _, i := range line.Replies {
		if i > 0 && !slices.Contains(line.Replies, i-1) {
			if _, ok := b.replies[line.HashIDs[i-1]]; !ok {
				b.replies[line.HashIDs[i-1]] = line.HashIDs[i]
			}
		}
	}
}

// segments are the prompt's blocks, and a last one for what is in no block. A
// reply has the name of the answer to the prompt before it, so that an engine
// that generated it has it in its cache.
func (b *blockNames) segments(line *recordedLine, number uint64) []Segment {
	var segments []Segment
	total, reply := 0, false
	for i, id := range line.HashIDs {
		length := b.lengths[id]
		total += length
		inReply := slices.Contains(line.Replies, i)
		switch {
		case inReply && reply:
			segments[len(segments)-1].Tokens += length
			continue
		case inReply && i > 0 && b.replies[line.HashIDs[i-1]] == id:
			segments = append(segments, Segment{answerTo(line.HashIDs[i-1]), Raw, length})
			reply = true
			continue
		}
		segments = append(segments, Segment{mixed(id), Raw, length})
		reply = false
	}
	if rest := line.Input - total; rest > 0 {
		segments = append(segments, Segment{mixed(number ^ 0x7a11), Raw, rest})
	}
	return segments
}

// answer names what the model said: what a later prompt repeats.
func (b *blockNames) answer(line *recordedLine, number uint64) uint64 {
	if n := len(line.HashIDs); n > 0 {
		return answerTo(line.HashIDs[n-1])
	}
	return mixed(number ^ 0xa2532)
}

func answerTo(id uint64) uint64 { return mixed(id ^ 0x5ea1ed) }
