package selection

import "time"

const (
	// slotVotes is how many late first tokens must agree on a number of slots.
	slotVotes = 3
	// lateBy is how late a first token must be to ask what it waited for.
	lateBy = 250 * time.Millisecond
)

// slots is how many sequences a replica runs at once: as reported, or learned
// from first tokens that came late, just after another sequence had ended. 0 is
// no limit.
type slots struct {
	reported, learned int
	candidate, votes  int
	freed             time.Time // when a running sequence ended last
}

func (s *slots) limit() int {
	if s.reported > 0 {
		return s.reported
	}
	return s.learned
}

// begin notes that a prefill, which takes about so long and took longer,
// was done beside so many running sequences.
func (s *slots) begin(now time.Time, expected, took time.Duration, beside int) {
	if s.learned > 0 && beside >= s.learned {
		s.learned, s.votes = 0, 0
	}
	late := took > 2*expected+lateBy
	freed := !s.freed.IsZero() && now.Sub(s.freed) <= 2*expected+lateBy/2
	if late && freed && beside > 0 {
		s.vote(beside + 1)
	}
}

// vote counts for the number that most late first tokens agree on.
func (s *slots) vote(n int) {
	switch {
	case s.votes == 0:
		s.candidate, s.votes = n, 1
	case s.candidate == n:
		s.votes++
	default:
		s.votes--
	}
	if s.votes >= slotVotes {
		s.learned = s.candidate
	}
}
