package fleet

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// Draw says how a scenario or a trace is to be run.
type Draw struct {
	Replicas int
	// Profile is that of the replicas; those of the scenario if it has no name.
	Profile engine.Profile
	// Rate is the number of requests per second, or of users where each waits
	// for his answers. 0 stands for the scenario's high load and the trace's own.
	Rate     float64
	Seed     uint64
	Duration time.Duration // 0 for the whole of a trace, or as long as the study runs a scenario
	Traces   string        // folder of the scenarios' trace files
}

// Drawn is a workload ready to be run.
type Drawn struct {
	Options
	Rate float64 // as it came to be
	// Left are the requests left out because no replica could ever serve them.
	Left int
}

// usualDuration is how long a workload lasts that has no end.
const usualDuration = 10 * time.Minute

// HighLoad is the rate of the study's high load on so many replicas of a profile.
// On another one than the scenario's it is scaled by the speed of prefill alone.
func (s Scenario) HighLoad(replicas int, p engine.Profile) float64 {
	speed := float64(s.Profile.PerPrefillToken) / float64(p.PerPrefillToken)
	return 0.8 * s.Saturation * float64(replicas) * speed
}

// Scenario draws a scenario.
func (d Draw) Scenario(s Scenario) (*Drawn, error) {
	if d.Profile.Name == "" {
		d.Profile = s.Profile
	} else {
		s.Fleet = nil
	}
	if d.Rate == 0 {
		d.Rate = s.HighLoad(d.Replicas, d.Profile)
	}
	if d.Duration == 0 {
		d.Duration = s.stretched(usualDuration)
	}
	s.Profile = d.Profile
	o, err := s.Options(d.Replicas, d.Rate/(s.Saturation*float64(d.Replicas)), d.Seed, d.Duration, d.Traces)
	if err != nil {
		return nil, err
	}
	return d.fit(o)
}

// Trace draws a trace file of any format that package workload reads.
func (d Draw) Trace(path string) (*Drawn, error) {
	file, err := openTrace(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if d.Profile.Name == "" {
		d.Profile = engine.H100x8B
	}
	w, err := workload.Trace{Name: traceName(path), Users: d.users(), Ramp: warmup, Seed: d.Seed}.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d.Duration = d.pace(w)
	o := Options{Workload: w, Until: d.Duration, Warmup: min(warmup, d.Duration/4)}
	for range d.Replicas {
		o.Replicas = append(o.Replicas, d.Profile)
	}
	return d.fit(o)
}

// users run the sessions of a trace that has no times of its own.
func (d Draw) users() int {
	if d.Rate == 0 {
		return 5 * d.Replicas
	}
	return max(1, int(math.Round(d.Rate)))
}

// pace brings a trace to the wanted rate and returns how long it is to be run.
func (d Draw) pace(w *workload.Workload) time.Duration {
	if w.Users > 0 {
		return cmp.Or(d.Duration, usualDuration)
	}
	if own := w.Rate(); d.Rate > 0 && own > 0 {
		w.Hasten(d.Rate / own)
	}
	end := max(w.End()+1, time.Second)
	return min(cmp.Or(d.Duration, end), end)
}

// fit leaves out what some replica could not serve, since rules do not know who can.
func (d Draw) fit(o Options) (*Drawn, error) {
	least := o.Replicas[0]
	for _, p := range o.Replicas {
		if p.MaxTokens() < least.MaxTokens() {
			least = p
		}
	}
	drawn := &Drawn{Options: o, Left: o.Workload.Fit(least.MaxTokens())}
	if len(o.Workload.Sessions) == 0 {
		return nil, fmt.Errorf("workload %s has no request of at most %d tokens, the most that %s can hold",
			o.Workload.Name, least.MaxTokens(), least.Name)
	}
	if drawn.Rate = float64(o.Workload.Users); o.Workload.Users == 0 {
		drawn.Rate = float64(o.Workload.Requests()) / max(o.Until, o.Workload.End()).Seconds()
	}
	return drawn, nil
}

// traceName is a trace file's name without folder and ending.
func traceName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".gz")
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// HasTrace reports whether the trace file that a scenario needs is there.
func (s Scenario) HasTrace(folder string) bool {
	if s.Trace == "" {
		return true
	}
	_, err := os.Stat(tracePath(folder, s.Trace))
	return err == nil
}
