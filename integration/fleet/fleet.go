package fleet

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// Options say what to run.
type Options struct {
	Workload *workload.Workload
	// Replicas are the profiles of the fleet.
	Replicas []engine.Profile
	// Events happen to replicas, in order of time.
	Events []Event
	// Until is when no further request is sent; what was sent is answered.
	// 0 lasts as long as the workload.
	Until time.Duration
	// Warmup is how long requests are not counted.
	Warmup time.Duration
}

// EventKind says what happens to a replica.
type EventKind uint8

// The kinds of events.
const (
	// Leave takes a replica out of the candidates; it answers what it has.
	Leave EventKind = iota + 1
	// Join makes it a candidate, cold if it crashed. A replica whose first event
	// is Join is none before.
	Join
	// Crash drops its requests, which are placed anew, and its cache. It stays a
	// candidate unless it leaves too.
	Crash
	// Slow multiplies the time of its steps by Factor.
	Slow
)

// Event is something that happens to a replica.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Replica int
	Factor  float64
}

// Run sends the workload through a router and reports how it went. The same
// options give the same requests at the same times to every router, except
// that in closed loops a turn waits for the answer before it.
func Run(o Options, router Router) (*Result, error) {
	f := newFleet(o, router)
	for {
		next, kind := f.next()
		if next == engine.Never {
			break
		}
		f.now = next
		var err error
		switch kind {
		case eventDue:
			err = f.apply(f.events[0])
			f.events = f.events[1:]
		case stepDue:
			err = f.advance(f.clocks.order[0])
		case requestDue:
			err = f.send(f.due.pop())
		}
		if err != nil {
			return nil, err
		}
	}
	return f.result, nil
}

type run struct {
	options Options
	router  Router
	engines []*engine.Engine
	clocks  clocks
	events  []Event
	due     dueList
	now     time.Duration
	begun   int // sessions of an open workload
	queues  [][]int
	// candidates are the replicas that may be chosen.
	candidates []int
	flying     map[uint64]*Request
	sent       uint64
	result     *Result
}

func newFleet(o Options, router Router) *run {
	f := &run{options: o, router: router, events: o.Events, flying: map[uint64]*Request{}, result: newResult(o)}
	first := map[int]EventKind{}
	for _, e := range o.Events {
		if first[e.Replica] == 0 {
			first[e.Replica] = e.Kind
		}
	}
	for i, p := range o.Replicas {
		f.engines = append(f.engines, engine.New(p))
		f.clocks.add(i)
		if first[i] != Join {
			f.candidates = append(f.candidates, i)
		}
	}
	for user := range o.Workload.Users {
		f.begin(user, user)
	}
	return f
}

// begin lets a user start a session: his n-th is session user + n*Users, whatever
// the others do, so that all rules see the same.
func (f *run) begin(user, index int) {
	if index >= len(f.options.Workload.Sessions) {
		return
	}
	s := &f.options.Workload.Sessions[index]
	f.push(&due{at: f.now + s.Turns[0].Think, history: newHistory(s), user: user, session: index})
}

func (f *run) push(d *due) {
	if f.options.Until == 0 || d.at < f.options.Until {
		heap.Push(&f.due, d)
	}
}

type dueKind uint8

const (
	eventDue dueKind = iota
	stepDue
	requestDue
)

// next is when and what comes next.
func (f *run) next() (at time.Duration, kind dueKind) {
	f.beginOpen()
	at = engine.Never
	if len(f.events) > 0 {
		at, kind = f.events[0].At, eventDue
	}
	if t := f.clocks.next[f.clocks.order[0]]; t < at {
		at, kind = t, stepDue
	}
	if len(f.due) > 0 && f.due[0].at < at {
		at, kind = f.due[0].at, requestDue
	}
	return at, kind
}

// beginOpen makes the next session of an open workload due. They are in order
// of time, so that one at a time is enough.
func (f *run) beginOpen() {
	w := f.options.Workload
	for w.Users == 0 && f.begun < len(w.Sessions) {
		s := &w.Sessions[f.begun]
		if len(f.due) > 0 && f.due[0].at < s.Start {
			return
		}
		f.push(&due{at: s.Start, history: newHistory(s), user: -1, session: f.begun})
		f.begun++
	}
}

// send routes the next request of a session.
func (f *run) send(d *due) error {
	r := d.history.next(f.options.Replicas[0].BlockSize)
	if r == nil {
		return nil
	}
	r.Arrived, r.user, r.Session = f.now, d.user, uint64(d.session)
	return f.place(r)
}

func (f *run) place(r *Request) error {
	if len(f.candidates) == 0 {
		return fmt.Errorf("placing request at %v: no replica is a candidate", f.now)
	}
	r.Replica = f.router.Choose(f.now, r, f.candidates)
	f.sent++
	r.sequence.Tag = f.sent
	f.flying[f.sent] = r
	e := f.engines[r.Replica]
	if err := e.Submit(f.now, &r.sequence); err != nil {
		return fmt.Errorf("session %d: %w", r.Session, err)
	}
	// Nothing may have happened before now: the engine was advanced up to it.
	f.clocks.set(r.Replica, e.NextEvent())
	return nil
}

// advance lets a replica go on to its next event.
func (f *run) advance(replica int) error {
	e := f.engines[replica]
	for _, event := range e.Advance(f.now) {
		r := f.flying[event.Request.Tag]
		switch event.Kind {
		case engine.FirstToken:
			f.router.FirstToken(event.At, r)
		case engine.Finished:
			delete(f.flying, event.Request.Tag)
			f.router.End(event.At, r)
			f.result.add(r)
			f.goOn(r)
		}
	}
	f.clocks.set(replica, e.NextEvent())
	return nil
}

// goOn makes the turn after r due, or the user's next session.
func (f *run) goOn(r *Request) {
	h := r.history
	if h.turn < len(h.session.Turns) {
		f.push(&due{at: f.now + h.session.Turns[h.turn].Think, history: h, user: r.user, session: int(r.Session)})
	} else if r.user >= 0 {
		f.begin(r.user, int(r.Session)+f.options.Workload.Users)
	}
}

// clocks is a heap of replicas by their next event.
type clocks struct {
	next   []time.Duration
	order  []int
	placed []int
}

func (c *clocks) add(replica int) {
	c.next = append(c.next, engine.Never)
	c.order = append(c.order, replica)
	c.placed = append(c.placed, replica)
}

func (c *clocks) set(replica int, at time.Duration) {
	c.next[replica] = at
	heap.Fix(c, c.placed[replica])
}

func (c *clocks) Len() int { return len(c.order) }
func (c *clocks) Less(i, j int) bool {
	a, b := c.order[i], c.order[j]
	return c.next[a] < c.next[b] || c.next[a] == c.next[b] && a < b
}
func (c *clocks) Swap(i, j int) {
	c.order[i], c.order[j] = c.order[j], c.order[i]
	c.placed[c.order[i]], c.placed[c.order[j]] = i, j
}
func (c *clocks) Push(any) {}
func (c *clocks) Pop() any { return nil }

// due is a session whose next turn is to be sent.
type due struct {
	at      time.Duration
	history *history
	user    int
	session int
}

type dueList []*due

func (d dueList) Len() int { return len(d) }
func (d dueList) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].session < d[j].session
}
func (d dueList) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dueList) Push(x any)   { *d = append(*d, x.(*due)) }
func (d *dueList) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
func (d *dueList) pop() *due { return heap.Pop(d).(*due) }
