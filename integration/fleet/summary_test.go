package fleet

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func rowOf(policy, workload string, seed uint64, ttft, p99, e2e float64) Row {
	return Row{Policy: policy, Workload: workload, Load: 0.8, Seed: seed, TTFTMean: ttft, TTFTP99: p99, E2EMean: e2e}
}

var twoCells = []Row{
	rowOf("a", "w", 1, 1, 10, 5), rowOf(OwnPolicy, "w", 1, 2, 5, 5), rowOf(PooledLRU, "w", 1, 0.1, 0.1, 0.1),
	rowOf("a", "v", 1, 8, 10, 5), rowOf(OwnPolicy, "v", 1, 4, 5, 5), rowOf(PooledLRU, "v", 1, 0.1, 0.1, 0.1),
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestSummaries(t *testing.T) {
	list := Summarize(twoCells)
	if len(list) != 2 || list[0].Policy != "a" || list[1].Policy != OwnPolicy {
		t.Fatalf("%+v", list)
	}
	a, own := list[0], list[1]
	if !near(a.TTFT.Mean, math.Sqrt2) || !near(a.TTFT.Worst, 2) || a.TTFT.WorstAt != "v@0.8" || !near(a.P99.Mean, 2) || !near(a.E2E.Mean, 1) {
		t.Errorf("a: %+v", a)
	}
	if !near(own.TTFT.Mean, math.Sqrt2) || own.TTFT.WorstAt != "w@0.8" || !near(own.P99.Worst, 1) {
		t.Errorf("own: %+v", own)
	}
	versus := Versus(twoCells)
	if !near(versus.TTFT.Mean, 1) || !near(versus.TTFT.Worst, 2) || !near(versus.P99.Mean, 0.5) {
		t.Errorf("to the best other: %+v", versus)
	}
	against := AgainstOwn(twoCells)
	if len(against) != 2 || against[0].Policy != "a" || against[1].Policy != PooledLRU {
		t.Fatalf("%+v", against)
	}
	if a := against[0]; !near(a.TTFT.Mean, 1) || !near(a.TTFT.Best, 0.5) || a.TTFT.BestAt != "w@0.8" || !near(a.P99.Mean, 2) {
		t.Errorf("against cache_aware: %+v", a)
	}
}

// One seed's luck is no cell of its own: a policy that is faster under one seed
// and slower under another is compared by what both come to.
func TestSeedsAreOneCell(t *testing.T) {
	rows := []Row{
		rowOf("a", "w", 1, 1, 4, 1), rowOf(OwnPolicy, "w", 1, 4, 4, 1),
		rowOf("a", "w", 2, 9, 9, 1), rowOf(OwnPolicy, "w", 2, 1, 4, 1),
	}
	list := Summarize(rows)
	if a := list[0].TTFT; !near(a.Mean, 1.5) || !near(a.Worst, 1.5) || a.WorstAt != "w@0.8" {
		t.Errorf("a to the best of the cell: %+v", a)
	}
	if own := list[1].TTFT; !near(own.Worst, 1) {
		t.Errorf("cache_aware to the best of the cell: %+v", own)
	}
	if own := Versus(rows).TTFT; !near(own.Mean, 2.0/3) || !near(own.Worst, 2.0/3) {
		t.Errorf("cache_aware to the other: %+v", own)
	}
	if a := AgainstOwn(rows)[0].P99; !near(a.Mean, 1.5) || !near(a.Best, 1.5) {
		t.Errorf("a to cache_aware: %+v", a)
	}
	var b strings.Builder
	if err := errors.Join(WriteCells(&b, rows), WriteSummary(&b, rows)); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Count(text, "w  0.80") != 1 || strings.Contains(text, "#") {
		t.Errorf("seeds are told apart in\n%s", text)
	}
}

func TestMergePutsSeedsTogether(t *testing.T) {
	rows := []Row{rowOf("a", "w", 1, 1, 2, 3), rowOf("b", "w", 1, 7, 7, 7), rowOf("a", "w", 2, 4, 2, 12)}
	rows[0].HitRate, rows[2].HitRate, rows[2].Requests = 0.2, 0.4, 5
	rows[0].Imbalance, rows[2].Imbalance = 1, 2
	merged := Merge(rows)
	if len(merged) != 2 {
		t.Fatalf("%+v", merged)
	}
	a := merged[0]
	if math.Abs(a.TTFTMean-2) > 1e-9 || math.Abs(a.E2EMean-6) > 1e-9 || math.Abs(a.HitRate-0.3) > 1e-9 || !near(a.Imbalance, 1.5) || a.Seed != 0 || a.Requests != 5 {
		t.Errorf("%+v", a)
	}
	if rows[0].TTFTMean != 1 {
		t.Error("the rows themselves were changed")
	}
}

func TestTablesNameWhatTheyCompare(t *testing.T) {
	for _, c := range []struct {
		rows   []Row
		want   []string
		absent string
	}{
		{twoCells, []string{
			"w  0.80      2.000       1.000  a   2.00     5.000      10.000  a   0.50",
			"ratio to cache_aware  mean TTFT  best         p99 TTFT",
			"a      1.000  0.50  w@0.8     2.000  2.00  w@0.8",
			"cache_aware to the best other      1.000   2.00  w@0.8",
			"w  0.80     1   pooled-lru",
		}, "Inf"},
		{twoCells[1:2], []string{"w  0.80      2.000           -        -"}, "ratio to cache_aware"},
		{twoCells[:1], []string{"ratio to the best of each cell"}, OwnPolicy},
	} {
		var b strings.Builder
		if err := errors.Join(WriteRows(&b, c.rows), WriteCells(&b, c.rows), WriteSummary(&b, c.rows)); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
		if strings.Contains(b.String(), c.absent) {
			t.Errorf("%q in\n%s", c.absent, b.String())
		}
	}
}

// A study that was interrupted goes on with what is left.
func TestStudyGoesOn(t *testing.T) {
	scenarios := []Scenario{}
	for _, name := range []string{"four-slots", "mooncake"} {
		s, err := ScenarioNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		scenarios = append(scenarios, s)
	}
	study := Study{
		Scenarios: scenarios, Loads: []float64{0.3, 0.8}, Policies: []string{"random", OwnPolicy, InfiniteCache},
		Seeds: []uint64{1, 2}, Replicas: 2, Duration: 20 * time.Second, Traces: t.TempDir(),
	}
	var finished []Row
	study.Finished = func(r Row) error { finished = append(finished, r); return nil }
	rows, missing, err := study.Run()
	if err != nil || len(rows) != 12 || len(finished) != 12 || !reflect.DeepEqual(missing, []string{"mooncake"}) {
		t.Fatalf("%d rows, %d finished, missing %v, error %v", len(rows), len(finished), missing, err)
	}
	study.Known, finished = append([]Row(nil), finished[:7]...), nil
	done := 0
	study.Progress = func(n, all int) { done = n }
	again, _, err := study.Run()
	if err != nil || !reflect.DeepEqual(rows, again) || len(finished) != 5 || done != 12 {
		t.Errorf("%d finished, %d done, error %v, the same rows: %v", len(finished), done, err, reflect.DeepEqual(rows, again))
	}
	full := errors.New("disk full")
	study.Known, study.Finished = nil, func(Row) error { return full }
	if _, _, err := study.Run(); !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
}
