package module

import (
	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// reportOf is what the decision needs to know of a replica's report.
func reportOf(r *health.Report) selection.Report {
	return selection.Report{
		At:              r.At,
		Restarted:       r.Restarted,
		Sleeping:        r.Sleeping,
		NoPrefixCaching: r.PrefixCaching == health.Off,
		PrivateSlots:    r.PrivateSlots,
		Running:         r.Running,
		Waiting:         r.Waiting,
		CapacityTokens:  r.CapacityTokens,
		Slots:           r.Slots,
		PrefixQueries:   r.PrefixQueries,
		PrefixHits:      r.PrefixHits,
	}
}
