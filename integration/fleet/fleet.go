package fleet

import (
	"container/heap"
	"fmt"
	"slices"
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
	// Knowledge is what the router gets to know; nil for RouterVisible.
	Knowledge *Knowledge
	// Foreign is the share of sessions whose requests reach the replicas past
	// the router, in turn. They are not counted, and it never hears of them.
	Foreign float64

	watch watch
}

// watch sees requests just before they are handed to a replica, and when they
// have ended, foreign ones excepted. Each may be nil.
type watch struct {
	placing func(f *run, r *Request)
	ended   func(r *Request)
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
	// Crash drops its requests, which are placed anew, and its cache. It starts
	// again after For, and refuses what is sent to it until then. It stays a
	// candidate unless it leaves too.
	Crash
	// Slow multiplies the time of its steps by Factor.
	Slow
	// Reset empties its cache; its requests go on.
	Reset
	// Sleep empties its cache and stops its work For so long.
	Sleep
)

// Event is something that happens to a replica.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Replica int
	Factor  float64
	For     time.Duration
}

// Run sends the workload through a router and reports how it went. The same
// options give the same requests at the same times to every router, except
// that in closed loops a turn waits for the answer before it.
func Run(o Options, router Router) (*Result, error) {
	return newFleet(o, router).all()
}

// all runs until nothing is left to happen.
func (f *run) all() (*Result, error) {
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
		case pageDue:
			err = f.askOrDeliver(f.metrics.clocks.order[0])
		case stepDue:
			err = f.advance(f.clocks.order[0])
		case requestDue:
			err = f.send(f.due.pop())
		}
		if err != nil {
			return nil, err
		}
	}
	for _, e := range f.engines {
		f.result.Busy = append(f.result.Busy, e.Stats().BusyTime)
	}
	return f.result, nil
}

type run struct {
	options Options
	knowing Knowledge
	router  Router
	engines []*engine.Engine
	clocks  clocks
	metrics *metrics
	events  []Event
	due     dueList
	now     time.Duration
	begun   int // sessions of an open workload
	foreign int // requests that went past the router
	// candidates are the replicas that may be chosen.
	candidates []int
	downUntil  []time.Duration // of each replica
	flying     map[uint64]*Request
	sent       uint64
	result     *Result
}

func newFleet(o Options, router Router) *run {
	f := &run{
		options: o, knowing: RouterVisible, router: router, events: o.Events,
		downUntil: make([]time.Duration, len(o.Replicas)), flying: map[uint64]*Request{}, result: newResult(o),
	}
	if o.Knowledge != nil {
		f.knowing = *o.Knowledge
	}
	f.knowing.truth = f.truth
	router.Configure(f.knowing)
	f.metrics = newMetrics(router, f.knowing, len(o.Replicas))
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
	pageDue
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
	// Pages alone keep no run going.
	if t := f.metrics.next(); at != engine.Never && t < at {
		at, kind = t, pageDue
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
	r.foreign = float64(mix(r.Session)>>11)/(1<<53) < f.options.Foreign
	return f.place(r)
}

// place sends a request to the replica that is chosen for it, and to another
// one when that refuses it.
func (f *run) place(r *Request) error {
	candidates := f.candidates
	for {
		if len(candidates) == 0 {
			return fmt.Errorf("placing request at %v: no replica takes it", f.now)
		}
		if r.foreign {
			f.foreign++
			r.Replica = candidates[f.foreign%len(candidates)]
		} else {
			r.Replica = f.router.Choose(f.now, r, candidates)
		}
		if f.downUntil[r.Replica] <= f.now {
			return f.submit(r)
		}
		if !r.foreign {
			f.router.Fail(f.now, r)
			f.result.Retried++
		}
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(i int) bool { return i == r.Replica })
	}
}

func (f *run) submit(r *Request) error {
	r.Placed = f.now
	if f.options.watch.placing != nil && !r.foreign {
		f.options.watch.placing(f, r)
	}
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
		switch {
		case event.Kind == engine.Finished:
			delete(f.flying, event.Request.Tag)
			f.finish(event.At, r)
			f.goOn(r)
		case !r.foreign:
			f.router.FirstToken(event.At, r)
		}
	}
	f.clocks.set(replica, e.NextEvent())
	return nil
}

func (f *run) finish(at time.Duration, r *Request) {
	if r.foreign {
		return
	}
	r.telling, r.dialect = f.knowing.Usage, f.options.Replicas[r.Replica].Dialect
	f.router.End(at, r)
	f.result.add(r)
	if f.options.watch.ended != nil {
		f.options.watch.ended(r)
	}
}

// askOrDeliver asks a replica for its metrics, or hands over what it has told.
func (f *run) askOrDeliver(replica int) error {
	if f.metrics.underway[replica] != nil {
		f.metrics.deliver(f.now, replica)
		return nil
	}
	if f.downUntil[replica] > f.now {
		f.metrics.missed(f.now, replica)
		return nil
	}
	if err := f.advance(replica); err != nil {
		return err
	}
	f.metrics.ask(f.now, replica, f.engines[replica])
	return nil
}
