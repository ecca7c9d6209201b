package fleet

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
)

// Study compares policies on scenarios at loads.
type Study struct {
	Scenarios []Scenario
	// Loads are shares of saturation.
	Loads    []float64
	Policies []string
	Seeds    []uint64
	Replicas int
	Duration time.Duration
	Traces   string // folder of the trace files
	// Progress is called after every run, from several goroutines; may be nil.
	Progress func(done, all int)
}

// Row is one run. Times are in seconds.
type Row struct {
	Policy    string  `json:"policy"`
	Workload  string  `json:"workload"`
	Load      float64 `json:"load,omitempty"`
	Seed      uint64  `json:"seed"`
	Requests  int     `json:"requests"`
	TTFTMean  float64 `json:"ttft_mean_s"`
	TTFTP50   float64 `json:"ttft_p50_s"`
	TTFTP90   float64 `json:"ttft_p90_s"`
	TTFTP99   float64 `json:"ttft_p99_s"`
	E2EMean   float64 `json:"e2e_mean_s"`
	HitRate   float64 `json:"hit_rate"`
	Imbalance float64 `json:"imbalance"`
}

func newRow(r *Result) Row {
	return Row{
		Requests: r.Requests, TTFTMean: Mean(r.TTFT), TTFTP50: r.Quantile(0.5), TTFTP90: r.Quantile(0.9),
		TTFTP99: r.Quantile(0.99), E2EMean: Mean(r.EndToEnd), HitRate: r.HitRate(), Imbalance: r.Imbalance(),
	}
}

type job struct {
	scenario Scenario
	load     float64
	seed     uint64
	policy   string
	row      *Row
}

// Run runs all of them, as many at once as there are processors. Scenarios whose
// trace is not there are left out and named in missing.
func (s Study) Run() (rows []Row, missing []string, err error) {
	jobs, missing := s.jobs()
	rows = make([]Row, len(jobs))
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		done  int
		next  = make(chan int)
	)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				row, runErr := s.run(jobs[i])
				mu.Lock()
				rows[i], err = row, errors.Join(err, runErr)
				done++
				if s.Progress != nil {
					s.Progress(done, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	group.Wait()
	return rows, missing, err
}

func (s Study) jobs() (jobs []job, missing []string) {
	for _, scenario := range s.Scenarios {
		if scenario.Trace != "" {
			file, err := openTrace(tracePath(s.Traces, scenario.Trace))
			if errors.Is(err, ErrNoTrace) {
				missing = append(missing, scenario.Name)
				continue
			}
			if err == nil {
				file.Close()
			}
		}
		for _, load := range s.Loads {
			for _, seed := range s.Seeds {
				for _, policy := range s.Policies {
					jobs = append(jobs, job{scenario: scenario, load: load, seed: seed, policy: policy})
				}
			}
		}
	}
	return jobs, missing
}

func (s Study) run(j job) (Row, error) {
	options, err := j.scenario.Options(s.Replicas, j.load, j.seed, s.Duration, s.Traces)
	if err != nil {
		return Row{}, err
	}
	router, err := NewRouter(j.policy, options.Replicas, j.seed)
	if err != nil {
		return Row{}, err
	}
	result, err := Run(options, router)
	if err != nil {
		return Row{}, fmt.Errorf("running %s under %s: %w", j.scenario.Name, j.policy, err)
	}
	row := newRow(result)
	row.Policy, row.Workload, row.Load, row.Seed = j.policy, j.scenario.Name, j.load, j.seed
	return row, nil
}

// Summary is how a policy compares with the best one of each cell, a cell being
// a workload at a load with a seed: ratios, as geometric mean and worst.
type Summary struct {
	Policy string `json:"policy"`
	TTFT   Ratio  `json:"ttft_mean"`
	P99    Ratio  `json:"ttft_p99"`
	E2E    Ratio  `json:"e2e_mean"`
}

// Ratio to the best of each cell.
type Ratio struct {
	Mean  float64 `json:"geometric_mean"`
	Worst float64 `json:"worst"`
	At    string  `json:"worst_at"`
}

// Summarize compares the policies of rows, in the order in which they appear.
func Summarize(rows []Row) []Summary {
	var order []string
	sums := map[string]*Summary{}
	for _, row := range rows {
		if sums[row.Policy] == nil {
			sums[row.Policy] = &Summary{Policy: row.Policy}
			order = append(order, row.Policy)
		}
	}
	for _, metric := range []struct {
		of   func(Row) float64
		into func(*Summary) *Ratio
	}{
		{func(r Row) float64 { return r.TTFTMean }, func(s *Summary) *Ratio { return &s.TTFT }},
		{func(r Row) float64 { return r.TTFTP99 }, func(s *Summary) *Ratio { return &s.P99 }},
		{func(r Row) float64 { return r.E2EMean }, func(s *Summary) *Ratio { return &s.E2E }},
	} {
		best := map[string]float64{}
		for _, row := range rows {
			if low, ok := best[row.cell()]; !ok || metric.of(row) < low {
				best[row.cell()] = metric.of(row)
			}
		}
		cells := map[string]int{}
		for _, row := range rows {
			ratio := metric.into(sums[row.Policy])
			r := metric.of(row) / best[row.cell()]
			ratio.Mean += math.Log(r)
			cells[row.Policy]++
			if r > ratio.Worst {
				ratio.Worst, ratio.At = r, row.cell()
			}
		}
		for policy, n := range cells {
			ratio := metric.into(sums[policy])
			ratio.Mean = math.Exp(ratio.Mean / float64(n))
		}
	}
	var list []Summary
	for _, policy := range order {
		list = append(list, *sums[policy])
	}
	return list
}

func (r Row) cell() string { return fmt.Sprintf("%s@%g#%d", r.Workload, r.Load, r.Seed) }
