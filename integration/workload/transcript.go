package workload

import "github.com/seed5db0839e/caddy-cache-aware/integration/engine"

// Transcript is a session as an engine's cache sees it: as a growing chain of
// tokens. It makes the requests of virtual time.
type Transcript struct {
	session *Session
	chain   *engine.Chain
	turn    int
}

// NewTranscript begins a session for an engine with blocks of that many tokens.
func NewTranscript(s *Session, blockSize int) *Transcript {
	t := &Transcript{session: s, chain: engine.NewChain(0, blockSize)}
	for _, segment := range s.Shared {
		t.say(segment)
	}
	return t
}

// Next is the request of the next turn, or nil after the last.
func (t *Transcript) Next() *engine.Request {
	if t.turn == len(t.session.Turns) {
		return nil
	}
	turn := t.session.Turns[t.turn]
	if t.turn > 0 {
		t.chain.Add(engine.EndOfTurn())
	}
	t.turn++
	for _, segment := range turn.Added {
		t.say(segment)
	}
	t.chain.Add(engine.RoleToken(Assistant))
	r := &engine.Request{Prompt: t.chain.Len(), Output: turn.Answer.Tokens}
	t.add(turn.Answer)
	r.Keys = t.chain.Keys()
	return r
}

// say appends a segment as the chat template does.
func (t *Transcript) say(s Segment) {
	t.chain.Add(engine.RoleToken(s.Role))
	t.add(s)
	t.chain.Add(engine.EndOfTurn())
}

// add appends tokens that stand for the segment's text.
func (t *Transcript) add(s Segment) {
	for i := range uint64(s.Tokens) {
		t.chain.Add(s.ID + i)
	}
}
