package module

import (
	"sync"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// keptDecisions is how many decisions of one state can be looked at afterwards.
const keptDecisions = 128

// decision is what is remembered of one attempt at one request: numbers, names
// of replicas and the model's, nothing else of the request.
type decision struct {
	at         time.Time
	model      string
	tokens     int // of the prompt
	attempt    int // 1 for the first one
	reason     selection.Reason
	unread     error // why no prompt could be read
	candidates int
	considered []selection.Estimate // of candidates, the chosen one first
	outcome    outcome
}

// decisions are the latest decisions of a state, and how many there were of
// each kind. The zero value is empty and ready; methods are safe for
// concurrent use.
type decisions struct {
	mu    sync.Mutex
	ring  [keptDecisions]*decision
	count uint64 // of all that were ever added
	kinds map[selection.Reason]uint64
}

// add remembers d in the place of the oldest one.
func (d *decisions) add(fresh *decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kinds == nil {
		d.kinds = make(map[selection.Reason]uint64)
	}
	d.kinds[fresh.reason]++
	d.ring[d.count%keptDecisions] = fresh
	d.count++
}

// latest returns the remembered decisions, newest first.
func (d *decisions) latest() []*decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(d.count, keptDecisions)
	list := make([]*decision, 0, n)
	for i := range n {
		list = append(list, d.ring[(d.count-1-i)%keptDecisions])
	}
	return list
}

// byReason returns how many decisions there were for each reason, those that
// never occurred included.
func (d *decisions) byReason() map[selection.Reason]uint64 {
	counts := make(map[selection.Reason]uint64, len(reasons))
	for _, reason := range reasons {
		counts[reason] = 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for reason, n := range d.kinds {
		counts[reason] = n
	}
	return counts
}

// reasons are all that a decision may have.
var reasons = []selection.Reason{
	selection.ReasonPrefix, selection.ReasonSpread, selection.ReasonCold, selection.ReasonHint,
	reasonOwner, selection.ReasonLoad, selection.ReasonOnly, reasonFallback,
}

// decide remembers the decision for the call's present attempt, among so many
// candidates.
func (k *call) decide(booking *selection.Booking, candidates int) *decision {
	return &decision{
		at:         time.Now(),
		model:      k.request.Model,
		tokens:     k.request.Tokens + k.request.Extra,
		attempt:    len(k.request.Avoid) + 1,
		reason:     booking.Reason,
		unread:     k.unread,
		candidates: candidates,
		considered: booking.Considered,
	}
}

// result is how an attempt ended.
type result string

const (
	resultOpen      result = "open"
	resultAnswered  result = "answered"
	resultFailed    result = "failed"
	resultCancelled result = "cancelled"
)

// outcome is what becomes of an attempt. Its methods may be called by
// whoever looks at past decisions, too.
type outcome struct {
	mu     sync.Mutex
	ttft   time.Duration // until the first token; 0 while unknown
	said   usage         // what the answer has said of itself
	result result        // empty while it is open

	recorded *recordedRequest // nil unless it belongs to a recording
}

func (o *outcome) firstToken(after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ttft = after
}

// usage takes in what the answer says of itself, but for its id.
func (o *outcome) usage(u usage) {
	u.responseID = ""
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = u
}

// close sets the result, unless there is one.
func (o *outcome) close(r result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.result == "" {
		o.result = r
		o.recorded.close(r, o.ttft, o.said)
		o.recorded = nil
	}
}

// reported is what the answer has said of itself so far.
func (o *outcome) reported() selection.Usage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return selection.Usage{
		Prompt:  o.said.promptTokens,
		Output:  o.said.outputTokens,
		Cached:  o.said.cachedTokens,
		Checked: o.said.cachedKnown,
		Prefill: o.said.prefillSeconds,
	}
}
