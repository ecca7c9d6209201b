package module

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// recordingBuffer is how many requests may wait for the reader of a recording.
// Beyond it they are left out.
const recordingBuffer = 1024

// recording captures what passes a state, for one reader. It keeps no text and
// no names: when a request came, lengths, and keys that mean nothing outside of
// this one recording.
type recording struct {
	began time.Time
	salt  cipher.Block
	ended chan *recordedRequest
	gone  chan struct{} // closed with the state
	left  atomic.Int64  // requests left out since the last line
}

// recordedRequest is an attempt at a request that belongs to a recording.
type recordedRequest struct {
	into      *recording
	at        time.Time
	blocks    []selection.Block
	estimated int // tokens of the prompt
	ttft      time.Duration
	said      usage
}

func newRecording(now time.Time) (*recording, error) {
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, fmt.Errorf("drawing salt: %w", err)
	}
	salt, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("salting keys: %w", err)
	}
	return &recording{
		began: now, salt: salt,
		ended: make(chan *recordedRequest, recordingBuffer), gone: make(chan struct{}),
	}, nil
}

// take notes an attempt whose decision is made, if there is a recording. What
// asks no work of an engine does not belong to it.
func (r *recording) take(request *selection.Request, at time.Time) *recordedRequest {
	if r == nil || request.Work == selection.Light {
		return nil
	}
	return &recordedRequest{
		into: r, at: at, blocks: request.Blocks, estimated: request.Tokens + request.Extra,
	}
}

// close hands the request over when it was answered, to its end or until the
// client left. The reader may be too slow for it.
func (q *recordedRequest) close(how result, ttft time.Duration, said usage) {
	if q == nil || how == resultFailed || how == resultCancelled && ttft == 0 {
		return
	}
	q.ttft, q.said = ttft, said
	select {
	case q.into.ended <- q:
	default:
		q.into.left.Add(1)
	}
}

// recordedLine is a line of a recording: docs/trace-format.md.
type recordedLine struct {
	Timestamp    int64    `json:"timestamp"` // milliseconds since the recording began
	InputLength  int      `json:"input_length"`
	OutputLength int      `json:"output_length"`
	BlockLengths []int    `json:"block_lengths"`
	HashIDs      []uint64 `json:"hash_ids"`
	ReplyBlocks  []int    `json:"reply_blocks,omitempty"`
	CachedLength *int     `json:"cached_length,omitempty"`
	TTFT         float64  `json:"ttft_ms,omitempty"`
	LeftOut      int64    `json:"left_out,omitempty"`
}

// line is what a request looks like in the recording, or nil if nothing is known
// of its length. It must be called from one goroutine at a time.
func (r *recording) line(q *recordedRequest) *recordedLine {
	input := q.said.promptTokens
	if input < q.said.cachedTokens || input == 0 {
		input = max(q.estimated, q.said.cachedTokens)
	}
	if input == 0 {
		r.left.Add(1)
		return nil
	}
	l := &recordedLine{
		Timestamp:    max(0, q.at.Sub(r.began).Milliseconds()),
		InputLength:  input,
		OutputLength: q.said.outputTokens,
		BlockLengths: make([]int, len(q.blocks)),
		HashIDs:      make([]uint64, len(q.blocks)),
		TTFT:         milliseconds(q.ttft.Seconds()),
		LeftOut:      r.left.Swap(0),
	}
	if q.said.cachedKnown {
		l.CachedLength = &q.said.cachedTokens
	}
	before := 0
	for i, b := range q.blocks {
		// Lengths are estimated, and made to fit what the engine counted.
		end := int(float64(b.Tokens) * float64(input) / float64(max(1, q.estimated)))
		l.BlockLengths[i] = max(0, min(end, input)-before)
		before += l.BlockLengths[i]
		l.HashIDs[i] = r.id(b.Key)
		if b.Reply {
			l.ReplyBlocks = append(l.ReplyBlocks, i)
		}
	}
	return l
}

// id is a key as it is called in this recording alone: encrypted, and cut to what
// every JSON reader takes for a whole number.
func (r *recording) id(key uint64) uint64 {
	var block [16]byte
	binary.LittleEndian.PutUint64(block[:], key)
	r.salt.Encrypt(block[:], block[:])
	return binary.LittleEndian.Uint64(block[:]) >> 11
}
