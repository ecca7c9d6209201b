package fleet

import "github.com/seed5db0839e/caddy-cache-aware/integration/workload"

// family is a session that waits for those that it has spawned.
type family struct {
	left    int // still running
	history *history
	user    int
	session uint64
}

// goOn begins what comes after an answer.
func (f *run) goOn(r *Request) {
	if len(r.Turn.Spawn) > 0 {
		f.spawn(r, r.Turn.Spawn)
		return
	}
	f.follow(r.history, r.user, r.Session)
}

// spawn begins the sessions that a turn asks for, all at once.
func (f *run) spawn(r *Request, sessions []workload.Session) {
	waiting := &family{left: len(sessions), history: r.history, user: r.user, session: r.Session}
	for i := range sessions {
		h := newHistory(&sessions[i])
		h.family = waiting
		// The number depends on where the session comes from, so that it is the
		// same under all rules.
		number := mix(r.Session<<24^uint64(r.history.turn)<<8^uint64(i)) >> 2
		f.push(&due{at: f.now + sessions[i].Turns[0].Think, history: h, user: -1, session: int(number)})
	}
}

// follow makes the next turn of a session due, or what waits for its end.
func (f *run) follow(h *history, user int, session uint64) {
	switch {
	case h.turn < len(h.session.Turns):
		f.push(&due{at: f.now + h.session.Turns[h.turn].Think, history: h, user: user, session: int(session)})
	case h.family != nil:
		if h.family.left--; h.family.left == 0 {
			f.follow(h.family.history, h.family.user, h.family.session)
		}
	case user >= 0:
		f.begin(user, int(session)+f.options.Workload.Users)
	}
}
