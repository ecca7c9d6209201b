package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Mooncake reads traces in the JSON lines format of github.com/kvcache-ai/Mooncake:
// arrival time in milliseconds, lengths in tokens, and one id per block of the
// prompt, where equal ids at the same place mean equal text from the beginning.
type Mooncake struct {
	Name string
	// BlockTokens is the size of a trace block, 512 when it is 0.
	BlockTokens int
	// Bucket is the step to which arrival times were rounded down; requests of
	// one step are spread evenly over it. Guess finds it in the trace.
	Bucket time.Duration
	// Speed divides all arrival times, which multiplies the load; 0 is 1.
	Speed float64
	// Duration ends the workload, in time after Speed; 0 is the whole trace.
	Duration time.Duration
	// MaxTokens leaves out requests that are longer, answer included; 0 is no limit.
	MaxTokens int
}

// Guess stands for the smallest step between arrival times, if most requests share
// theirs with others.
const Guess time.Duration = -1

type mooncakeLine struct {
	Timestamp float64  `json:"timestamp"`
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	HashIDs   []uint64 `json:"hash_ids"`
}

// Read makes an open workload of a trace. Every request is a session of its own,
// since a trace tells when a request came and not what it waited for.
func (m Mooncake) Read(from io.Reader) (*Workload, error) {
	lines, err := m.lines(from)
	if err != nil {
		return nil, err
	}
	w := &Workload{Name: m.Name}
	times := m.times(lines)
	for i, line := range lines {
		at := times[i]
		if m.Speed > 0 {
			at = time.Duration(float64(at) / m.Speed)
		}
		if m.Duration > 0 && at >= m.Duration {
			break
		}
		if m.MaxTokens > 0 && line.Input+line.Output > m.MaxTokens {
			continue
		}
		w.Sessions = append(w.Sessions, Session{Start: at, Turns: []Turn{{
			Fresh:  true,
			Added:  m.segments(line),
			Answer: Segment{mixed(uint64(i)<<1 | 1), Assistant, max(1, line.Output)},
		}}})
	}
	return w, nil
}

func (m Mooncake) lines(from io.Reader) ([]mooncakeLine, error) {
	var lines []mooncakeLine
	err := eachLine(from, func(raw []byte) error {
		var line mooncakeLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		if err := checkTimestamp(line.Timestamp); err != nil {
			return err
		}
		if most := len(line.HashIDs) * m.blockTokens(); line.Input < 1 || line.Input > most {
			return fmt.Errorf("input_length is %d, want 1 to %d for %d hash_ids", line.Input, most, len(line.HashIDs))
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading trace: %w", err)
	}
	slices.SortStableFunc(lines, func(a, b mooncakeLine) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return lines, nil
}

// checkTimestamp keeps differences of times within what a Duration can hold.
func checkTimestamp(milliseconds float64) error {
	if math.Abs(milliseconds) > 4e12 {
		return fmt.Errorf("timestamp is %g, want milliseconds", milliseconds)
	}
	return nil
}

// times are the arrival times, equal ones spread over the bucket.
func (m Mooncake) times(lines []mooncakeLine) []time.Duration {
	times := make([]time.Duration, len(lines))
	bucket := m.Bucket
	if bucket == Guess {
		bucket = guessBucket(lines)
	}
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines) && lines[j].Timestamp == lines[i].Timestamp {
			j++
		}
		at := time.Duration((lines[i].Timestamp - lines[0].Timestamp) * float64(time.Millisecond))
		for k := i; k < j; k++ {
			times[k] = at + bucket*time.Duration(k-i)/time.Duration(j-i)
		}
		i = j
	}
	return times
}

func guessBucket(lines []mooncakeLine) time.Duration {
	distinct, least := 1, math.Inf(1)
	for i := 1; i < len(lines); i++ {
		if step := lines[i].Timestamp - lines[i-1].Timestamp; step > 0 {
			distinct++
			least = min(least, step)
		}
	}
	if 2*distinct > len(lines) || distinct == 1 {
		return 0
	}
	return time.Duration(least * float64(time.Millisecond))
}

func (m Mooncake) blockTokens() int {
	if m.BlockTokens > 0 {
		return m.BlockTokens
	}
	return 512
}

// segments are the prompt's blocks, neighbours with consecutive ids in one.
func (m Mooncake) segments(line mooncakeLine) []Segment {
	return blockRuns(line.HashIDs, line.Input, m.blockTokens(), 0)
}

// blockRuns turns block ids into segments, so that a block's tokens have numbers
// of their own: id*size and those that follow. The last block may be partial.
func blockRuns(ids []uint64, tokens, size int, base uint64) []Segment {
	var runs []Segment
	for i, id := range ids {
		n := min(size, tokens-i*size)
		if n <= 0 {
			break
		}
		if i > 0 && id == ids[i-1]+1 {
			runs[len(runs)-1].Tokens += n
			continue
		}
		runs = append(runs, Segment{base + id*uint64(size), Raw, n})
	}
	return runs
}
