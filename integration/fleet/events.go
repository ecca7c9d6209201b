package fleet

import (
	"fmt"
	"slices"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// apply lets an event happen.
func (f *run) apply(e Event) error {
	target := f.engines[e.Replica]
	at, listed := slices.BinarySearch(f.candidates, e.Replica)
	switch e.Kind {
	case Leave:
		if listed {
			f.candidates = slices.Delete(f.candidates, at, at+1)
		}
	case Join:
		if !listed {
			f.candidates = slices.Insert(f.candidates, at, e.Replica)
		}
	case Slow:
		target.Slow(f.now, e.Factor)
		return f.advance(e.Replica)
	case Reset:
		target.ClearCache(f.now)
		return f.advance(e.Replica)
	case Sleep:
		target.Sleep(f.now, f.now+e.For)
		return f.advance(e.Replica)
	case Crash:
		f.downUntil[e.Replica] = f.now + e.For
		return f.crash(e.Replica)
	default:
		return fmt.Errorf("event at %v: unknown kind %d", e.At, e.Kind)
	}
	return nil
}

// crash drops what a replica was working on and places it anew.
func (f *run) crash(replica int) error {
	if err := f.advance(replica); err != nil {
		return err
	}
	dropped := f.engines[replica].Reset(f.now)
	f.clocks.set(replica, f.engines[replica].NextEvent())
	for _, sequence := range dropped {
		r := f.flying[sequence.Tag]
		delete(f.flying, sequence.Tag)
		if !r.foreign {
			f.router.Fail(f.now, r)
			f.result.Retried++
		}
		// An engine takes a sequence once only; the time lost counts.
		again := *r
		again.sequence = engine.Request{Keys: sequence.Keys, Prompt: sequence.Prompt, Output: sequence.Output}
		if err := f.place(&again); err != nil {
			return err
		}
	}
	return nil
}
