package module

import (
	"slices"
	"strings"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// Status is what the policies of one name know.
type Status struct {
	Name     string                    `json:"name"`
	Replicas []selection.ReplicaStatus `json:"replicas"`
}

// Statuses lists what all running policies know, ordered by name.
func Statuses() []Status {
	now := time.Now()
	list := []Status{}
	states.Range(func(key, value any) bool {
		list = append(list, Status{Name: key.(string), Replicas: value.(*state).fleet.Status(now)})
		return true
	})
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return list
}
