// Package workload describes traffic of LLM clients: sessions of one or more
// turns, each of which sends all that was said before and adds to it.
//
// What is said is a sequence of [Segment]s. They have an identity and a length
// but no text, so that the same workload runs in virtual time, as block keys
// ([Transcript]), and over HTTP, as chat bodies ([Dialogue]); both have the same
// number of tokens and share the same prefixes.
package workload

import "time"

// Workload is a number of sessions and how they are begun.
type Workload struct {
	Name string
	// Users is how many sessions run side by side: each user takes the next
	// session when its last one has ended. With 0 every session begins at its
	// own time, whatever became of the others.
	Users int
	// Sessions in the order in which they are begun.
	Sessions []Session
}

// Session is one conversation.
type Session struct {
	// Shared begins every prompt: tool schemas and a system prompt, which other
	// sessions may have in common.
	Shared []Segment
	Turns  []Turn
	// Start is when the session begins, where there are no users.
	Start time.Duration
	// Client is the same for sessions that are one to their client, as a trace's
	// requests may be; 0 if this one stands for itself.
	Client uint64
}

// Turn is one request and its answer.
type Turn struct {
	// Think is the time from the last answer, or from the session's beginning,
	// to this request.
	Think time.Duration
	// Fresh drops what was said before, shared segments included.
	Fresh bool
	// Added follows what was said before.
	Added []Segment
	// Answer is what the model says.
	Answer Segment
	// Spawn are sessions that begin together when the answer is there, as those
	// of sub-agents. What comes after this turn waits until all have ended. Only
	// virtual time knows them.
	Spawn []Session
}

// Roles of segments besides those of chat messages.
const (
	// Raw is a piece of a prompt that was rendered already, as in traces of
	// token blocks. Only virtual time knows it.
	Raw       = ""
	Tools     = "tools"
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// Segment is a piece of a prompt: the tool schemas, or one message. Segments with
// the same ID, role and length have the same text.
type Segment struct {
	ID     uint64
	Role   string
	Tokens int
}

// Requests is the number of requests in all sessions, spawned ones included.
func (w *Workload) Requests() int { return requests(w.Sessions) }

func requests(sessions []Session) (n int) {
	for i := range sessions {
		n += len(sessions[i].Turns)
		for k := range sessions[i].Turns {
			n += requests(sessions[i].Turns[k].Spawn)
		}
	}
	return n
}
