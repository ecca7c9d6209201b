package workload

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// Coding reads sessions of coding agents in the JSON lines format of
// github.com/callanjfox/kv-cache-tester, with run-length coded block ids that are
// comparable within one session. They are replayed in a closed loop: the next
// request is sent when the last answer is there and the think time is over.
type Coding struct {
	Name string
	// Users is as in Workload. Sessions is how many are drawn, in random order,
	// with repetition when the trace has fewer.
	Users, Sessions int
	// MaxThink bounds the time between an answer and the next request.
	MaxThink time.Duration
	// MaxTokens ends a session before the first request that is longer.
	MaxTokens int
	// Ramp is the time over which the users begin, evenly.
	Ramp time.Duration
}

// longestThink is the most that a trace may ask for.
const longestThink = 30 * 24 * time.Hour

type codingLine struct {
	BlockSize int             `json:"block_size"`
	Tools     int             `json:"tool_tokens"`
	System    int             `json:"system_tokens"`
	Requests  []codingRequest `json:"requests"`
}

type codingRequest struct {
	Type  string      `json:"type"`
	In    int         `json:"in"`
	Out   int         `json:"out"`
	Runs  [][2]uint64 `json:"hash_runs"`
	Think float64     `json:"think_time"`
}

// Read draws the workload from a trace; it is the same for the same seed.
// Sub-agents are left out. A user's first session begins somewhere in its first
// half, so that contexts of all lengths run side by side from the beginning.
func (c Coding) Read(from io.Reader, seed uint64) (*Workload, error) {
	var all []Session
	number := uint64(0)
	err := eachLine(from, func(raw []byte) error {
		number++
		var line codingLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		if line.BlockSize < 1 || line.BlockSize > longestPrompt {
			return fmt.Errorf("block_size is %d, want 1 to %d", line.BlockSize, longestPrompt)
		}
		if s := c.session(line, number); len(s.Turns) > 0 {
			all = append(all, s)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading sessions: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading sessions: none found")
	}
	return c.draw(all, seed), nil
}

func (c Coding) draw(all []Session, seed uint64) *Workload {
	rng := rand.New(rand.NewPCG(seed, 0xc0d1))
	w := &Workload{Name: c.Name, Users: c.Users}
	order := rng.Perm(len(all))
	for i := range c.Sessions {
		s := all[order[i%len(order)]]
		if i < c.Users {
			s.Turns = append([]Turn(nil), s.Turns[rng.IntN((len(s.Turns)+1)/2):]...)
			s.Turns[0].Think = c.Ramp * time.Duration(i) / time.Duration(c.Users)
		}
		w.Sessions = append(w.Sessions, s)
	}
	return w
}

func (c Coding) session(line codingLine, number uint64) Session {
	var s Session
	shared := (line.Tools + line.System) / line.BlockSize
	global := mixed(uint64(line.Tools)<<32 | uint64(line.System))
	local := mixed(number<<8 | 7)
	for i, r := range line.Requests {
		if r.Type == "subagent" || r.In < 1 || r.In > longestPrompt {
			continue
		}
		if c.MaxTokens > 0 && r.In+r.Out > c.MaxTokens {
			break
		}
		think := time.Duration(max(0, min(r.Think, longestThink.Seconds())) * float64(time.Second))
		if c.MaxThink > 0 {
			think = min(think, c.MaxThink)
		}
		s.Turns = append(s.Turns, Turn{
			Think:  think,
			Fresh:  true,
			Added:  codingSegments(r, line.BlockSize, shared, global, local),
			Answer: Segment{mixed(local + uint64(i)), Assistant, max(1, r.Out)},
		})
	}
	return s
}

// codingSegments gives the first blocks a name that sessions with the same tools
// and system prompt have in common, and all others a name within the session.
func codingSegments(r codingRequest, size, shared int, global, local uint64) []Segment {
	var segments []Segment
	add := func(id uint64, tokens int) {
		if last := len(segments) - 1; last >= 0 && segments[last].ID+uint64(segments[last].Tokens) == id {
			segments[last].Tokens += tokens
		} else if tokens > 0 {
			segments = append(segments, Segment{id, Raw, tokens})
		}
	}
	left := r.In
	block := 0
	for _, run := range r.Runs {
		first, count := run[0], int(min(run[1], uint64(left/size+1)))
		common := max(0, min(count, shared-block))
		n := min(left, common*size)
		add(global+uint64(block*size), n)
		left -= n
		n = min(left, (count-common)*size)
		add(local+(first+uint64(common))*uint64(size), n)
		left -= n
		block += count
	}
	if left > 0 { // a tail shorter than a block has no id
		add(mixed(local^uint64(r.In)), left)
	}
	return segments
}
