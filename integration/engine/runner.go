package engine

import (
	"sync"
	"time"
)

// flight is a request that an HTTP handler waits for.
type flight struct {
	request *Request
	changed chan struct{} // holds a signal when there are new tokens

	mu        sync.Mutex
	generated int
}

// progress is how many tokens there are.
func (f *flight) progress() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.generated
}

func (f *flight) update(generated int) {
	f.mu.Lock()
	news := generated != f.generated
	f.generated = generated
	f.mu.Unlock()
	if !news {
		return
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// runner steps an engine in real time, from one goroutine.
type runner struct {
	started time.Time
	wake    chan struct{} // holds a signal when the next step may have changed
	stopped chan struct{} // closed to stop
	done    chan struct{} // closed when stepping has stopped

	mu      sync.Mutex
	engine  *Engine
	flights map[*Request]*flight
}

func startRunner(p Profile) *runner {
	r := &runner{
		started: time.Now(), engine: New(p), flights: map[*Request]*flight{},
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), done: make(chan struct{}),
	}
	go r.run()
	return r
}

func (r *runner) stop() {
	close(r.stopped)
	<-r.done
}

func (r *runner) run() {
	defer close(r.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if wait := r.step(); wait >= 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.stopped:
			return
		}
	}
}

// step brings the engine up to the present and says how long its next step
// takes, or a negative duration if it has nothing to do.
func (r *runner) step() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.started)
	for _, ev := range r.engine.Advance(now) {
		if ev.Kind == Finished {
			r.flights[ev.Request].finish(r)
		}
	}
	for request, f := range r.flights {
		f.update(request.Generated)
	}
	next := r.engine.NextStep()
	if next == Never {
		return -1
	}
	return max(0, next-now)
}

// finish ends a flight whose request the engine has finished; it may have been
// cancelled in the meantime.
func (f *flight) finish(r *runner) {
	if f == nil {
		return
	}
	delete(r.flights, f.request)
	f.update(f.request.Generated)
}

// submit hands a request to the engine.
func (r *runner) submit(request *Request) (*flight, error) {
	f := &flight{request: request, changed: make(chan struct{}, 1)}
	err := r.do(func(e *Engine, now time.Duration) error {
		if err := e.Submit(now, request); err != nil {
			return err
		}
		r.flights[request] = f
		return nil
	})
	return f, err
}

// cancel drops a request unless it has finished.
func (r *runner) cancel(f *flight) {
	_ = r.do(func(e *Engine, now time.Duration) error {
		if r.flights[f.request] != nil {
			delete(r.flights, f.request)
			e.Cancel(now, f.request)
		}
		return nil
	})
}

// do lets f use the engine at the present time, and looks again at when the next
// step ends.
func (r *runner) do(f func(e *Engine, now time.Duration) error) error {
	r.mu.Lock()
	err := f(r.engine, time.Since(r.started))
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return err
}

func (r *runner) stats() (s Stats) {
	_ = r.do(func(e *Engine, now time.Duration) error {
		e.run(now)
		s = e.Stats()
		return nil
	})
	return s
}
