package health

import "math"

// add adds a sample to a total that is unknown (NaN) until the first one.
func add(total *float64, s sample) {
	if v, ok := s.value(); ok {
		addNumber(total, v)
	}
}

func addNumber(total *float64, v float64) {
	if !Known(*total) {
		*total = 0
	}
	*total += v
}

// set takes over a sample's value.
func set(quantity *float64, s sample) {
	if v, ok := s.value(); ok {
		*quantity = v
	}
}

// mean is the mean of the samples of a share that every rank tells.
type mean struct{ sum, n float64 }

func (m *mean) add(s sample) {
	if v, ok := s.value(); ok {
		m.sum += v
		m.n++
	}
}

// share returns the mean within 0 to 1, NaN if there were no samples.
func (m *mean) share() float64 { return share(m.sum, m.n) }

// share returns part / whole within 0 to 1, NaN if there is no whole.
func share(part, whole float64) float64 {
	if !(whole > 0) {
		return math.NaN()
	}
	return min(part/whole, 1)
}

// difference returns total - part, NaN if one of them is not known or the part
// is the larger: the two counters are not read at the same instant.
func difference(total, part float64) float64 {
	if !(total >= part) {
		return math.NaN()
	}
	return total - part
}

// first returns the first known quantity.
func first(quantities ...float64) float64 {
	for _, q := range quantities {
		if Known(q) {
			return q
		}
	}
	return math.NaN()
}

// maxRanks bounds how many data-parallel ranks behind one address are told
// apart.
const maxRanks = 256

// ranks collects one quantity over data-parallel ranks whose tensor and
// pipeline ranks may repeat it: within a rank the largest value counts.
type ranks struct {
	value [maxRanks]float64
	seen  [maxRanks]bool
}

// add takes a sample of the rank that its label names; without one it is of
// rank 0.
func (r *ranks) add(s sample, label string) {
	v, ok := s.value()
	if !ok {
		return
	}
	rank := s.labelNumber(label)
	if !(rank < maxRanks) {
		rank = 0
	}
	i := int(rank)
	r.value[i] = max(r.value[i], v)
	r.seen[i] = true
}

// sum returns the total over ranks and their number; NaN without any.
func (r *ranks) sum() (total, n float64) {
	total = math.NaN()
	for i, seen := range r.seen {
		if seen {
			addNumber(&total, r.value[i])
			n++
		}
	}
	return total, n
}

func (r *ranks) total() float64 {
	total, _ := r.sum()
	return total
}
