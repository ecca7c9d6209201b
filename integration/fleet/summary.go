package fleet

import (
	"fmt"
	"math"
)

// measures are what policies are compared by.
var measures = []struct {
	name string
	of   func(Row) float64
	into func(*Summary) *Ratio
}{
	{"mean TTFT", func(r Row) float64 { return r.TTFTMean }, func(s *Summary) *Ratio { return &s.TTFT }},
	{"p99 TTFT", func(r Row) float64 { return r.TTFTP99 }, func(s *Summary) *Ratio { return &s.P99 }},
	{"end to end", func(r Row) float64 { return r.E2EMean }, func(s *Summary) *Ratio { return &s.E2E }},
}

// Summary is how a policy compares in each cell, a cell being a workload at a
// load with all seeds together: ratios, as geometric mean, worst and best.
type Summary struct {
	Policy string `json:"policy"`
	TTFT   Ratio  `json:"ttft_mean"`
	P99    Ratio  `json:"ttft_p99"`
	E2E    Ratio  `json:"e2e_mean"`
}

// Ratio to what is compared with, over the cells.
type Ratio struct {
	Mean    float64 `json:"geometric_mean"`
	Worst   float64 `json:"worst"`
	WorstAt string  `json:"worst_at"`
	Best    float64 `json:"best"`
	BestAt  string  `json:"best_at"`

	logs float64 // sum
	n    int
}

func (r *Ratio) add(ratio float64, at string) {
	r.logs += math.Log(ratio)
	r.n++
	r.Mean = math.Exp(r.logs / float64(r.n))
	if ratio > r.Worst {
		r.Worst, r.WorstAt = ratio, at
	}
	if r.n == 1 || ratio < r.Best {
		r.Best, r.BestAt = ratio, at
	}
}

// Summarize compares the policies of rows, in the order in which they appear, with
// the best of them in each cell, cache_aware included. Bounds and oracle are left out.
func Summarize(rows []Row) []Summary { return summarize(rows, isPolicy, isPolicy) }

// Versus compares cache_aware with the best of the others in each cell, so that
// ratios under 1 are better than all of them. There is nothing in it without
// others.
func Versus(rows []Row) Summary {
	list := summarize(rows, isOwn, func(r Row) bool { return isPolicy(r) && !isOwn(r) })
	if len(list) == 0 {
		return Summary{Policy: OwnPolicy}
	}
	return list[0]
}

// AgainstOwn compares all others, bounds and oracle included, with cache_aware, so that a
// ratio of 1.2 takes a fifth longer than cache_aware.
func AgainstOwn(rows []Row) []Summary {
	return summarize(rows, func(r Row) bool { return !isOwn(r) }, isOwn)
}

func isOwn(r Row) bool    { return r.Policy == OwnPolicy }
func isPolicy(r Row) bool { return !IsBound(r.Policy) && r.Policy != Oracle }

// summarize compares those that are listed with the best rival of each cell.
func summarize(rows []Row, listed, rival func(Row) bool) (list []Summary) {
	rows = Merge(rows)
	places := map[string]int{}
	for _, row := range rows {
		if _, ok := places[row.Policy]; !ok && listed(row) {
			places[row.Policy] = len(list)
			list = append(list, Summary{Policy: row.Policy})
		}
	}
	for _, m := range measures {
		best := map[string]Row{}
		for _, row := range rows {
			if low, ok := best[row.cell()]; rival(row) && (!ok || m.of(row) < m.of(low)) {
				best[row.cell()] = row
			}
		}
		for _, row := range rows {
			low, ok := best[row.cell()]
			if place, in := places[row.Policy]; ok && in {
				m.into(&list[place]).add(m.of(row)/m.of(low), row.cell())
			}
		}
	}
	return list
}

// Merge puts the rows of all seeds together, as geometric means of times and means
// of rates. Their seed is 0.
func Merge(rows []Row) (merged []Row) {
	places, counts := map[string]int{}, []float64{}
	times := func(r *Row) []*float64 {
		return []*float64{&r.TTFTMean, &r.TTFTP50, &r.TTFTP90, &r.TTFTP99, &r.E2EMean}
	}
	for _, row := range rows {
		row.Seed = 0
		for _, v := range times(&row) {
			*v = math.Log(max(*v, 1e-9))
		}
		place, ok := places[row.name()]
		if !ok {
			places[row.name()] = len(merged)
			merged, counts = append(merged, row), append(counts, 1)
			continue
		}
		sum := &merged[place]
		counts[place]++
		sum.Requests += row.Requests
		sum.HitRate += row.HitRate
		sum.Imbalance += row.Imbalance
		for i, v := range times(sum) {
			*v += *times(&row)[i]
		}
	}
	for i := range merged {
		merged[i].HitRate /= counts[i]
		merged[i].Imbalance /= counts[i]
		for _, v := range times(&merged[i]) {
			*v = math.Exp(*v / counts[i])
		}
	}
	return merged
}

// name tells rows of a study apart.
func (r Row) name() string { return r.Policy + " " + r.cell() }

// cell names a workload at a load with a seed.
func (r Row) cell() string {
	name := fmt.Sprintf("%s@%g", r.Workload, r.Load)
	if r.Seed > 0 {
		name += fmt.Sprintf("#%d", r.Seed)
	}
	return name
}
