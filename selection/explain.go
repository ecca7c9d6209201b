package selection

import (
	"cmp"
	"slices"
	"time"
)

// maxConsidered is how many estimates a booking keeps.
const maxConsidered = 8

// Explain estimates a request on each candidate and books nothing. Candidates
// that are not known join. With nil for candidates it is every replica that
// Status lists, in order of cost.
func (f *Fleet) Explain(now time.Time, request *Request, candidates []string) []Estimate {
	matches := new([]Match)
	request = f.match(request, matches)
	f.mu.Lock()
	defer f.mu.Unlock()
	if candidates != nil {
		return slices.Clone(f.score(now, request, candidates, *matches))
	}
	f.candidates = f.present(f.candidates[:0])
	estimates := slices.Clone(f.estimateAll(now, request, *matches))
	slices.SortFunc(estimates, byCost)
	return estimates
}

func byCost(a, b Estimate) int {
	return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Replica, b.Replica))
}

// appendConsidered appends to an empty list the chosen estimate and, by cost,
// the longest holder's and the cheapest others as far as there is room.
func appendConsidered(list, estimates []Estimate, best int) []Estimate {
	longest := best
	for i := range estimates {
		if estimates[i].Matched > estimates[longest].Matched {
			longest = i
		}
	}
	var c cheapest
	c.room = cap(list) - 1
	if longest != best {
		c.room--
	}
	for i := range estimates {
		if i != best && i != longest {
			c.add(i, estimates[i].Cost)
		}
	}
	list = append(list, estimates[best])
	if longest != best {
		list = append(list, estimates[longest])
	}
	for _, i := range c.index[:c.n] {
		list = append(list, estimates[i])
	}
	slices.SortFunc(list[1:], byCost)
	return list
}

// cheapest finds the lowest of many costs. It moves numbers, as estimates are
// large and the fleet waits meanwhile.
type cheapest struct {
	index   [maxConsidered]int
	costs   [maxConsidered]float64
	n, room int
}

func (c *cheapest) add(i int, cost float64) {
	if c.n == c.room {
		if c.n == 0 || c.costs[c.n-1] <= cost {
			return
		}
		c.n--
	}
	k := c.n
	for ; k > 0 && c.costs[k-1] > cost; k-- {
		c.index[k], c.costs[k] = c.index[k-1], c.costs[k-1]
	}
	c.index[k], c.costs[k] = i, cost
	c.n++
}
