package module

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// Status is what the policies of one name know.
type Status struct {
	Name string `json:"name"`
	// Policies is how many policies of running configurations share it.
	Policies int             `json:"policies"`
	Index    IndexStatus     `json:"index"`
	Replicas []ReplicaStatus `json:"replicas"`
}

// IndexStatus is the state of the index of cached prefixes.
type IndexStatus struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Limit is what Bytes never exceeds.
	Limit int64 `json:"limit_bytes"`
	// Refused counts entries for which there was no room, Evicted those that had
	// to make room while a replica was still believed to hold them.
	Refused uint64 `json:"refused"`
	Evicted uint64 `json:"evicted"`
}

// ReplicaStatus is what is known of one replica.
type ReplicaStatus struct {
	selection.ReplicaStatus
	// Load is what the replica last said of itself, if it was asked.
	Load *LoadStatus `json:"load,omitempty"`
}

// LoadStatus is what a replica said of itself.
type LoadStatus struct {
	Engine string `json:"engine,omitempty"`
	Path   string `json:"path,omitempty"` // where its load is found
	// Failures counts polls that failed in a row; Error says why the last one did.
	Failures int            `json:"failures"`
	Error    string         `json:"error,omitempty"`
	Since    time.Time      `json:"since"` // when it began or ceased to answer
	Report   *health.Report `json:"report,omitempty"`
}

// Statuses lists what all running policies know, ordered by name.
func Statuses() []Status {
	now := time.Now()
	list := []Status{}
	for _, s := range runningStates() {
		list = append(list, s.status(now))
	}
	return list
}

// namedState is a state in use.
type namedState struct {
	name string
	*state
}

// runningStates lists the states in use, ordered by name.
func runningStates() []namedState {
	var list []namedState
	states.Range(func(key, value any) bool {
		list = append(list, namedState{key.(string), value.(*state)})
		return true
	})
	slices.SortFunc(list, func(a, b namedState) int { return strings.Compare(a.name, b.name) })
	return list
}

func (s namedState) status(now time.Time) Status {
	policies, _ := states.References(s.name)
	index := s.fleet.Index()
	status := Status{
		Name:     s.name,
		Policies: policies,
		Index: IndexStatus{
			Entries: index.Entries,
			Bytes:   index.Bytes,
			Limit:   index.Limit,
			Refused: index.Dropped + index.Rejected,
			Evicted: index.Evicted,
		},
		Replicas: []ReplicaStatus{},
	}
	loads := s.loadStatuses()
	for _, replica := range s.fleet.Status(now) {
		r := ReplicaStatus{ReplicaStatus: replica}
		if load, asked := loads[replica.Replica]; asked {
			r.Load = showLoad(&load)
		}
		status.Replicas = append(status.Replicas, r)
	}
	return status
}

func showLoad(h *health.Status) *LoadStatus {
	status := &LoadStatus{Engine: h.Engine, Path: h.Path, Failures: h.Failures, Since: h.Since}
	if h.Err != nil {
		status.Error = h.Err.Error()
	}
	if !h.Report.At.IsZero() {
		status.Report = &h.Report
	}
	return status
}

// failures is the number of polls that failed in a row, NaN if there are none.
func (l *LoadStatus) failures() float64 {
	if l == nil {
		return math.NaN()
	}
	return float64(l.Failures)
}

// report is what the replica last said, which is nothing if it never did.
func (l *LoadStatus) report() *health.Report {
	if l == nil || l.Report == nil {
		return &unknownReport
	}
	return l.Report
}

var unknownReport = health.Report{
	Running: math.NaN(), Waiting: math.NaN(), KVUsage: math.NaN(), CapacityTokens: math.NaN(),
}
