package selection

const (
	// paceMemory is after how many observations older ones count for 1/e.
	paceMemory = 64
	// pacePrior is for how many observations of a replica's own the fleet's
	// pace counts.
	pacePrior = 4
	// paceNoise is by what factor the paces of equal replicas seem to differ.
	paceNoise = 1.1
	// leastPrefill and leastDecode are how much work in seconds at the usual
	// speed an observation must be about to count in full.
	leastPrefill, leastDecode = 0.02, 0.5
	// paceOutlier is how many times longer than expected one observation may
	// count as.
	paceOutlier = 8
)

// pace learns how long work takes compared with what the usual speed says: 2
// is half as fast. It is a ratio of sums, so many observations that share their
// time in unknown ways, as prefills of one batch do, count right together.
type pace struct {
	taken, expected float64 // seconds, fading
	count           float64
}

// observe takes in work that was expected to take so long at the usual speed.
// usual is the pace of the fleet.
func (p *pace) observe(taken, expected, usual float64) {
	if expected <= 0 || taken < 0 {
		return
	}
	const keep = 1 - 1.0/paceMemory
	limit := paceOutlier * expected * p.factor(usual, expected)
	p.taken = p.taken*keep + min(taken, limit)
	p.expected = p.expected*keep + expected
	p.count = p.count*keep + 1
}

// factor is the pace, drawn towards that of the fleet as if pacePrior
// observations of typical seconds of work had shown it.
func (p *pace) factor(usual, typical float64) float64 {
	prior := pacePrior * typical
	if prior+p.expected == 0 {
		return usual
	}
	return min(max((p.taken+prior*usual)/(prior+p.expected), 1.0/maxPace), maxPace)
}

// maxPace bounds what is believed of a replica or a fleet.
const maxPace = 1000

// among is the pace of one replica of a fleet: the fleet's, but for what it
// differs by beyond noise. Replicas that are alike must not be told apart by
// chance, or prompts leave the caches that hold them.
// They are compared with what the fleet has shown, not with what that is drawn to 1:
// else one that was measured would seem faster than those that were not, or slower.
// Work of less than least seconds tells little, since its time is mostly chance.
func (p *pace) among(fleet *pace, least float64) float64 {
	if fleet.count == 0 {
		return 1
	}
	typical := max(fleet.expected/fleet.count, least)
	usual, shown := fleet.factor(1, typical), fleet.factor(1, 0)
	switch ratio := p.factor(shown, typical) / shown; {
	case ratio > paceNoise:
		return usual * ratio / paceNoise
	case ratio < 1/paceNoise:
		return usual * ratio * paceNoise
	default:
		return usual
	}
}

// paces are how fast a replica, or a fleet, prefills, decodes and works off its queue.
type paces struct {
	prefill, decode pace
	queue           pace // from one first token to the next, against the prefill booked
}
