package workload

import (
	"slices"
	"time"
)

// Fit leaves out what replicas could never serve: it ends every session before its
// first request of more than most tokens, answer included. It returns how many
// requests that leaves out.
func (w *Workload) Fit(most int) (left int) {
	before := w.Requests()
	w.Sessions = fit(w.Sessions, most)
	return before - w.Requests()
}

func fit(sessions []Session, most int) (kept []Session) {
	for _, s := range sessions {
		s.Turns = s.fitting(most)
		if len(s.Turns) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

// fitting are the turns before the first with more than most tokens, and of what
// they spawn likewise.
func (s *Session) fitting(most int) []Turn {
	turns, own := s.Turns, false
	said := 0
	for _, segment := range s.Shared {
		said += segment.inTemplate()
	}
	for i, turn := range turns {
		if turn.Fresh {
			said = 0
		}
		for _, segment := range turn.Added {
			said += segment.inTemplate()
		}
		answer := Segment{Role: Assistant, Tokens: turn.Answer.Tokens}
		if said+answer.inTemplate() > most {
			return turns[:i]
		}
		said += answer.inTemplate()
		if len(turn.Spawn) > 0 {
			if !own { // others may hold the same turns
				turns, own = slices.Clone(turns), true
			}
			turns[i].Spawn = fit(turn.Spawn, most)
		}
	}
	return turns
}

// inTemplate is a segment's length in the prompt: with the tokens that name the
// role and end the message, unless it was rendered already.
func (s Segment) inTemplate() int {
	if s.Role == Raw {
		return s.Tokens
	}
	return s.Tokens + 2
}

// Rate is the number of requests per second of a workload that begins its sessions
// at their own times.
func (w *Workload) Rate() float64 {
	if end := w.End(); end > 0 {
		return float64(w.Requests()) / end.Seconds()
	}
	return 0
}

// End is when the last session begins.
func (w *Workload) End() (last time.Duration) {
	for i := range w.Sessions {
		last = max(last, w.Sessions[i].Start)
	}
	return last
}

// Hasten divides the times at which sessions begin, which multiplies the load.
func (w *Workload) Hasten(factor float64) {
	for i := range w.Sessions {
		w.Sessions[i].Start = time.Duration(float64(w.Sessions[i].Start) / factor)
	}
}
