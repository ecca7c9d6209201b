package fleet

import (
	"errors"
	"fmt"
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
	Duration time.Duration // of scenarios without a stretch of their own
	Traces   string        // folder of the trace files
	// Known are rows of an earlier run of the same study, which are not run again.
	Known []Row
	// Finished is told of every new row, and Progress how many are done of all;
	// one call at a time, either may be nil.
	Finished func(Row) error
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

// job is one row to be made.
type job struct {
	policy string
	cell   *cell
}

// cell is a workload at a load with a seed, drawn once for all policies.
type cell struct {
	scenario Scenario
	load     float64
	seed     uint64
	once     sync.Once
	options  Options
	err      error
}

// Run runs all of them, as many at once as there are processors. Scenarios whose
// trace is not there are left out and named in missing. Rows come in the order of
// scenarios, loads, seeds and policies.
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
				row, runErr := s.row(jobs[i])
				jobs[i].cell = nil // frees the workload when it was the last
				mu.Lock()
				if runErr == nil && s.Finished != nil {
					runErr = s.Finished(row)
				}
				rows[i], err = row, errors.Join(err, runErr)
				if done++; s.Progress != nil {
					s.Progress(done, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	known := s.known()
	for i, j := range jobs {
		if row, ok := known[j.name()]; ok {
			mu.Lock()
			rows[i] = row
			done++
			mu.Unlock()
			continue
		}
		next <- i
	}
	close(next)
	group.Wait()
	return rows, missing, err
}

func (j job) name() string {
	return Row{Policy: j.policy, Workload: j.cell.scenario.Name, Load: j.cell.load, Seed: j.cell.seed}.name()
}

func (s Study) known() map[string]Row {
	rows := map[string]Row{}
	for _, row := range s.Known {
		rows[row.name()] = row
	}
	return rows
}

func (s Study) jobs() (jobs []job, missing []string) {
	for _, scenario := range s.Scenarios {
		if !scenario.HasTrace(s.Traces) {
			missing = append(missing, scenario.Name)
			continue
		}
		for _, load := range s.Loads {
			for _, seed := range s.Seeds {
				c := &cell{scenario: scenario, load: load, seed: seed}
				for _, policy := range s.Policies {
					jobs = append(jobs, job{policy, c})
				}
			}
		}
	}
	return jobs, missing
}

// row runs a job.
func (s Study) row(j job) (Row, error) {
	c := j.cell
	c.once.Do(func() {
		duration := c.scenario.stretched(s.Duration)
		c.options, c.err = c.scenario.Options(s.Replicas, c.load, c.seed, duration, s.Traces)
	})
	if c.err != nil {
		return Row{}, c.err
	}
	result, err := runPolicy(j.policy, c.options, c.seed)
	if err != nil {
		return Row{}, fmt.Errorf("running %s under %s: %w", c.scenario.Name, j.policy, err)
	}
	row := newRow(result)
	row.Policy, row.Workload, row.Load, row.Seed = j.policy, c.scenario.Name, c.load, c.seed
	return row, nil
}

// runPolicy runs a policy or a bound.
func runPolicy(policy string, o Options, seed uint64) (*Result, error) {
	if IsBound(policy) {
		return runBound(policy, o, nil, nil), nil
	}
	router, err := NewRouter(policy, o.Replicas, seed)
	if err != nil {
		return nil, err
	}
	return Run(o, router)
}
