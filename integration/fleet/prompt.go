package fleet

import (
	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// span is a run of tokens: token i is what id+i names.
type span struct {
	id     uint64
	tokens int
	text   text
	reply  bool
	end    ending
}

// ending says what ends with a span.
type ending uint8

const (
	inside ending = iota
	messageEnd
	turnEnd // where a reply attaches
)

// history is a session as its client holds it: what was said so far.
type history struct {
	session *workload.Session
	spans   []span
	turn    int
	family  *family // that it was spawned by, or nil
}

func newHistory(s *workload.Session) *history {
	h := &history{session: s}
	for _, segment := range s.Shared {
		h.say(segment)
	}
	return h
}

// say appends a message as the chat template does, a raw segment as it is.
func (h *history) say(s workload.Segment) {
	if s.Role == workload.Raw {
		h.spans = append(h.spans, span{id: s.ID, tokens: s.Tokens, text: textOf(s.Role)})
		return
	}
	role := span{id: engine.RoleToken(s.Role), tokens: 1, text: template}
	if s.Role == workload.Assistant {
		role.end = turnEnd
		h.spans = append(h.spans, role)
		h.reply(s)
		return
	}
	h.spans = append(h.spans, role,
		span{id: s.ID, tokens: s.Tokens, text: textOf(s.Role)},
		span{id: engine.EndOfTurn(), tokens: 1, end: messageEnd})
}

// next is the request of the next turn, nil after the last. The answer of the
// turn before is taken to be complete.
func (h *history) next(blockSize int) *Request {
	if h.turn == len(h.session.Turns) {
		return nil
	}
	turn := &h.session.Turns[h.turn]
	if turn.Fresh {
		h.spans = h.spans[:0]
	} else if h.turn > 0 {
		h.reply(h.session.Turns[h.turn-1].Answer)
	}
	h.turn++
	chat := false
	for _, segment := range turn.Added {
		h.say(segment)
		chat = segment.Role != workload.Raw
	}
	if chat {
		h.spans = append(h.spans, span{id: engine.RoleToken(workload.Assistant), tokens: 1})
	}
	h.spans[len(h.spans)-1].end = turnEnd
	r := &Request{Turn: turn, history: h}
	for _, s := range h.spans {
		r.Prompt += s.tokens
	}
	r.Texts, r.Text = textBlocks(h.spans)
	r.sequence = engine.Request{
		Prompt: r.Prompt,
		Output: turn.Answer.Tokens,
		Keys:   tokenKeys(h.spans, turn.Answer, r.Prompt+turn.Answer.Tokens, blockSize),
	}
	return r
}

func (h *history) reply(answer workload.Segment) {
	h.spans = append(h.spans,
		span{id: answer.ID, tokens: answer.Tokens, text: textOf(workload.Assistant), reply: true},
		span{id: engine.EndOfTurn(), tokens: 1, reply: true, end: messageEnd})
}

// hasher keys runs of tokens. Its state depends on the tokens and on where it
// was cut, not on how they were handed in.
type hasher struct {
	state    uint64
	from     uint64 // the run that is not hashed yet
	tokens   int
	position int // in tokens
}

func (h *hasher) add(id uint64, tokens int) {
	h.position += tokens
	if h.tokens > 0 && h.from+uint64(h.tokens) == id {
		h.tokens += tokens
		return
	}
	h.flush()
	h.from, h.tokens = id, tokens
}

func (h *hasher) flush() {
	if h.tokens > 0 {
		h.state = mix(h.state ^ mix(h.from+uint64(h.tokens)*0x9e3779b97f4a7c15))
	}
	h.tokens = 0
}

// cut is the key of everything so far.
func (h *hasher) cut() uint64 {
	h.flush()
	h.state = mix(h.state + 0x6a09e667f3bcc909)
	return h.state | 1 // never 0
}

// mix spreads a number over all its bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// tokenKeys are the keys of an engine's full blocks over prompt and answer.
func tokenKeys(spans []span, answer workload.Segment, tokens, size int) []uint64 {
	keys := make([]uint64, 0, tokens/size)
	var h hasher
	add := func(id uint64, left int) {
		for left > 0 {
			n := min(left, size-h.position%size)
			h.add(id, n)
			if h.position%size == 0 {
				keys = append(keys, h.cut())
			}
			id += uint64(n)
			left -= n
		}
	}
	for _, s := range spans {
		add(s.id, s.tokens)
	}
	add(answer.ID, answer.Tokens)
	return keys
}
