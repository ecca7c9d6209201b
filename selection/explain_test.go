package selection

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// someEstimates are estimates in no order, each cost once.
func someEstimates(n int) []Estimate {
	estimates := make([]Estimate, n)
	for i, k := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		estimates[i] = Estimate{Replica: fmt.Sprintf("10.0.0.%03d", i), Cost: float64(k), Matched: 7 * i % n}
	}
	return estimates
}

func TestConsideredAreTheCheapestWithChosenAndLongest(t *testing.T) {
	for _, n := range []int{1, 2, 3, 15, 16, 17, 18, 100} {
		estimates := someEstimates(n)
		for best := range estimates {
			list := appendConsidered(make([]Estimate, 0, min(n, maxConsidered)), estimates, best)
			if len(list) != min(n, maxConsidered) || list[0] != estimates[best] || !slices.IsSortedFunc(list[1:], byCost) {
				t.Fatalf("%d estimates: %+v", n, list)
			}
			checkConsidered(t, list, estimates, best)
		}
	}
}

// checkConsidered fails unless the chosen one, the longest holder and
// otherwise the cheapest are listed.
func checkConsidered(t *testing.T, list, estimates []Estimate, best int) {
	t.Helper()
	longest := slices.MaxFunc(estimates, func(a, b Estimate) int { return a.Matched - b.Matched })
	sorted := slices.SortedFunc(slices.Values(estimates), byCost)
	others := 0
	for _, e := range list {
		if e != estimates[best] && e != longest {
			others++
		}
	}
	want := []Estimate{estimates[best], longest}
	for _, e := range sorted {
		if others > 0 && e != estimates[best] && e != longest {
			want = append(want, e)
			others--
		}
	}
	for _, e := range want {
		if !slices.Contains(list, e) {
			t.Fatalf("%d estimates, best %d: %+v is missing in %+v", len(estimates), best, e, list)
		}
	}
}

func TestPlaceTellsWhatItConsidered(t *testing.T) {
	f := NewFleet(NewMapStore(), 1)
	b := f.Place(at(0), chat(1, 8000), addresses(40))
	defer b.End(at(time.Second), Usage{})
	if len(b.Considered) != maxConsidered || b.Considered[0] != b.Estimate {
		t.Errorf("considered %d, first %+v, chosen %+v", len(b.Considered), b.Considered[0], b.Estimate)
	}
}

func TestExplainOfAllKnown(t *testing.T) {
	f := NewFleet(NewMapStore(), 1)
	if got := f.Explain(at(0), chat(1, 8000), nil); len(got) != 0 {
		t.Errorf("nobody is known: %+v", got)
	}
	b := f.Place(at(0), chat(1, 8000), addresses(20))
	b.End(at(time.Second), Usage{})
	before := f.Status(at(2 * time.Second))
	got := f.Explain(at(2*time.Second), chat(1, 8000), nil)
	if len(got) != 20 || got[0].Replica != b.Estimate.Replica || got[0].Matched == 0 || !slices.IsSortedFunc(got, byCost) {
		t.Errorf("explained: %+v", got)
	}
	if after := f.Status(at(2 * time.Second)); !slices.Equal(before, after) {
		t.Errorf("explaining changed the fleet from %+v to %+v", before, after)
	}
}

func TestReplicasThatLeftAreNotListed(t *testing.T) {
	f := NewFleet(NewMapStore(), 1)
	place := func(at time.Time, candidates []string) *Booking {
		return f.Place(at, chat(1, 1000), candidates)
	}
	both, one := addresses(2), addresses(1)
	place(at(0), both).End(at(0), Usage{})
	place(at(0), both[1:]).End(at(0), Usage{})
	// Nothing is asked for in two hours: all are still there.
	if n := len(f.Status(at(2 * time.Hour))); n != 2 {
		t.Errorf("%d replicas are listed after two idle hours, want 2", n)
	}
	running := place(at(0), both[1:])
	place(at(2*time.Hour), one).End(at(2*time.Hour), Usage{})
	if n := len(f.Status(at(2 * time.Hour))); n != 2 {
		t.Errorf("%d replicas are listed while both work, want 2", n)
	}
	running.End(at(2*time.Hour), Usage{})
	if list := f.Status(at(2 * time.Hour)); len(list) != 1 || list[0].Replica != one[0] {
		t.Errorf("listed: %+v", list)
	}
	if n := len(f.Explain(at(2*time.Hour), chat(1, 1000), nil)); n != 1 {
		t.Errorf("%d replicas are explained, want 1", n)
	}
}

func BenchmarkConsidered(b *testing.B) {
	for _, n := range []int{4, 64, 512} {
		b.Run(fmt.Sprintf("%dreplicas", n), func(b *testing.B) {
			estimates := someEstimates(n)
			list := make([]Estimate, 0, min(n, maxConsidered))
			for b.Loop() {
				appendConsidered(list, estimates, n/2)
			}
		})
	}
}

// BenchmarkStatus measures how long the fleet's lock is held for a listing,
// and sorting it.
func BenchmarkStatus(b *testing.B) {
	for _, n := range []int{4, 64, 512} {
		b.Run(fmt.Sprintf("%dreplicas", n), func(b *testing.B) {
			f := NewFleet(NewMapStore(), 1)
			for i := range 2 * n {
				f.Place(at(0), chat(uint64(i), 8000), addresses(n))
			}
			b.Run("locked", func(b *testing.B) {
				for b.Loop() {
					f.statuses(at(time.Second))
				}
			})
			b.Run("all", func(b *testing.B) {
				for b.Loop() {
					f.Status(at(time.Second))
				}
			})
			b.Run("explain", func(b *testing.B) {
				request := chat(1, 8000)
				for b.Loop() {
					f.Explain(at(time.Second), request, nil)
				}
			})
		})
	}
}
