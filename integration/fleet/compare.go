package fleet

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Comparison runs one workload under several policies, bounds among them.
type Comparison struct {
	Options  Options // with a time in Until
	Policies []string
	Seed     uint64
	// Steps is the number of steps of each run's series.
	Steps int
	// Progress is told the share of all that is done, in order; may be nil.
	Progress func(share float64)
}

// Outcome is how a policy did.
type Outcome struct {
	Row
	Result *Result
	Series *Series
}

// Run runs the policies, as many at once as there are processors, and returns
// their outcomes in the same order.
func (c Comparison) Run() ([]Outcome, error) {
	var (
		outcomes = make([]Outcome, len(c.Policies))
		errs     = make([]error, len(c.Policies))
		group    sync.WaitGroup
		free     = make(chan struct{}, runtime.GOMAXPROCS(0))
		watch    = &overall{runs: make([]float64, len(c.Policies)), tell: c.Progress}
	)
	for i, policy := range c.Policies {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			outcomes[i], errs[i] = c.run(policy, func(now time.Duration) {
				watch.reach(i, float64(now)/float64(c.Options.Until))
			})
			watch.reach(i, 1)
		})
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("running %s under %s: %w", c.Options.Workload.Name, c.Policies[i], err)
		}
	}
	return outcomes, nil
}

func (c Comparison) run(policy string, progress func(now time.Duration)) (Outcome, error) {
	o := Outcome{}
	if IsBound(policy) {
		o.Series = newSeries(0, c.Options.Until, c.Steps)
		o.Result = runBound(policy, c.Options, o.Series, progress)
	} else {
		router, err := NewRouter(policy, c.Options.Replicas, c.Seed)
		if err != nil {
			return o, err
		}
		recorder := Record(router, len(c.Options.Replicas), c.Options.Until, c.Steps, progress)
		if o.Result, err = Run(c.Options, recorder); err != nil {
			return o, err
		}
		o.Series = recorder.Series()
	}
	o.Row = newRow(o.Result)
	o.Policy, o.Workload, o.Seed = policy, c.Options.Workload.Name, c.Seed
	return o, nil
}

// overall adds up how far several runs are.
type overall struct {
	mu   sync.Mutex
	runs []float64
	told int // thousandths
	tell func(share float64)
}

func (o *overall) reach(run int, share float64) {
	if o.tell == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[run] = min(1, share)
	sum := 0.0
	for _, s := range o.runs {
		sum += s
	}
	if share := sum / float64(len(o.runs)); int(1000*share) > o.told {
		o.told = int(1000 * share)
		o.tell(share)
	}
}
