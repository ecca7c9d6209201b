package workload

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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
	// one step are spread evenly over it.
	Bucket time.Duration
	// Speed divides all arrival times, which multiplies the load; 0 is 1.
	Speed float64
	// Duration ends the workload, in time after Speed; 0 is the whole trace.
	Duration time.Duration
	// MaxTokens leaves out requests that are longer, answer included; 0 is no limit.
	MaxTokens int
}

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
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 64<<20)
	var lines []mooncakeLine
	for n := 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var line mooncakeLine
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("reading trace, line %d: %w", n, err)
		}
		if most := len(line.HashIDs) * m.blockTokens(); line.Input < 1 || line.Input > most {
			return nil, fmt.Errorf("reading trace, line %d: input_length is %d, want 1 to %d for %d hash_ids",
				n, line.Input, most, len(line.HashIDs))
		}
		lines = append(lines, line)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading trace: %w", err)
	}
	slices.SortStableFunc(lines, func(a, b mooncakeLine) int {
		switch {
		case a.Timestamp < b.Timestamp:
			return -1
		case a.Timestamp > b.Timestamp:
			return 1
		}
		return 0
	})
	return lines, nil
}

// times are the arrival times, equal ones spread over the bucket.
func (m Mooncake) times(lines []mooncakeLine) []time.Duration {
	times := make([]time.Duration, len(lines))
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines) && lines[j].Timestamp == lines[i].Timestamp {
			j++
		}
		at := time.Duration((lines[i].Timestamp - lines[0].Timestamp) * float64(time.Millisecond))
		for k := i; k < j; k++ {
			times[k] = at + m.Bucket*time.Duration(k-i)/time.Duration(j-i)
		}
		i = j
	}
	return times
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
