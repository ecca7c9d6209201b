package selection

import (
	"slices"
	"strings"
	"time"
)

// ReplicaStatus is what a fleet knows of one replica at one moment.
type ReplicaStatus struct {
	Replica     string  `json:"replica"`
	Capacity    int     `json:"capacity_tokens"`
	Source      string  `json:"capacity_source"` // learned, configured, reported or assumed
	Resident    int     `json:"resident_tokens"`
	Doubted     bool    `json:"doubted"`        // it may have lost its cache
	EvictionAge float64 `json:"eviction_age_s"` // for how long what it evicts next has not been used, 0 with room
	Pressure    float64 `json:"pressure"`       // times as much that prefill costs there for what it evicts
	Queued      int     `json:"queued"`         // requests booked whose prefill is not known to be done
	Running     int     `json:"running"`        // requests booked past their prefill
	Context     int     `json:"context"`        // prompt tokens of both, as booked
	Prefill     float64 `json:"prefill_s"`      // prefill work booked for the queued ones
	Wait        float64 `json:"wait_s"`         // until a new prefill could begin
	Arrivals    float64 `json:"arrivals_per_s"`
	Utilisation float64 `json:"utilisation"` // share of time booked for prefill
	Failing     float64 `json:"failing_s"`   // price of recent failures of the replica as a whole

	PrefillPace float64 `json:"prefill_pace"` // times the usual time that a prefill takes
	DecodePace  float64 `json:"decode_pace"`  // the same of decoding
	QueuePace   float64 `json:"queue_pace"`   // times the booked prefills that its queue takes
	Slots       int     `json:"slots"`        // requests admitted at once, 0 when no limit is known
	Sure        float64 `json:"sure_trust"`   // share found of tokens held well within the capacity
	Edge        float64 `json:"edge_trust"`   // of those near it
	Ghost       float64 `json:"ghost_trust"`  // of those beyond it

	ForeignRunning float64 `json:"foreign_running"` // requests that did not come through here, at the last report
	ForeignWaiting float64 `json:"foreign_waiting"`

	Booked    uint64   `json:"booked"`    // requests since the replica is known
	Checked   Promises `json:"checked"`   // of answers that said how much was cached
	Unchecked Promises `json:"unchecked"` // of the other answers
}

// Status lists the replicas, ordered by address. Those that were no candidate
// for an hour, while others were, are left out.
func (f *Fleet) Status(now time.Time) []ReplicaStatus {
	list := f.statuses(now)
	slices.SortFunc(list, func(a, b ReplicaStatus) int { return strings.Compare(a.Replica, b.Replica) })
	return list
}

func (f *Fleet) statuses(now time.Time) []ReplicaStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.candidates = f.present(f.candidates[:0])
	mean := f.survey(now)
	list := make([]ReplicaStatus, 0, len(f.candidates))
	for _, r := range f.candidates {
		s := f.status(r, now)
		if r.turnover > 0 {
			s.EvictionAge = 1 / r.turnover
		}
		s.Pressure = f.pressure(r, mean)
		list = append(list, s)
	}
	return list
}

// present appends the replicas that are not long gone.
func (f *Fleet) present(list []*replica) []*replica {
	for _, r := range f.replicas {
		if !f.absent(r) {
			list = append(list, r)
		}
	}
	return list
}

// Index describes the index of cached prefixes as a whole.
func (f *Fleet) Index() Stats { return f.residency.Stats() }

func (f *Fleet) status(r *replica, now time.Time) ReplicaStatus {
	wait := r.wait(now)
	_, source := r.believed()
	r.rates.fade(now)
	return ReplicaStatus{
		Replica:     r.address,
		Capacity:    r.capacity,
		Source:      source,
		Resident:    f.resident(r),
		Doubted:     r.doubted,
		Queued:      r.ledger.queued,
		Running:     r.ledger.running,
		Context:     r.ledger.context,
		Prefill:     r.ledger.prefill.Seconds(),
		Wait:        wait,
		Arrivals:    r.rates.arrivals(),
		Utilisation: r.rates.utilisation(),
		Failing:     failurePrice(r.failures.whole.get(now, failureHalfLife)),
		PrefillPace: f.prefillPace(r),
		DecodePace:  f.decodePace(r),
		QueuePace:   r.queuePace(),
		Slots:       r.slots.limit(),
		Sure:        r.trust.sure,
		Edge:        r.trust.edge,
		Ghost:       r.trust.ghost,

		ForeignRunning: r.foreign.running,
		ForeignWaiting: r.foreign.waiting,

		Booked:    r.tally.booked,
		Checked:   r.tally.checked,
		Unchecked: r.tally.unchecked,
	}
}

// resident is the number of tokens that a replica is believed to hold.
func (f *Fleet) resident(r *replica) int {
	if r.sequences.known() {
		return r.sequences.resident()
	}
	return f.residency.Held(r.slot)
}
