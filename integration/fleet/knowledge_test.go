package fleet

import (
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// listener takes turns and remembers what it is told.
type listener struct {
	turn    int
	reports map[int][]selection.Report
	late    []time.Duration // how old reports were
	usage   []selection.Usage
	failed  int
}

func (l *listener) Choose(_ time.Duration, _ *Request, candidates []int) int {
	l.turn++
	return candidates[l.turn%len(candidates)]
}
func (l *listener) FirstToken(time.Duration, *Request) {}
func (l *listener) Fail(time.Duration, *Request)       { l.failed++ }
func (l *listener) Configure(Knowledge)                { l.reports = map[int][]selection.Report{} }
func (l *listener) End(_ time.Duration, r *Request) {
	l.usage = append(l.usage, r.Usage())
}

func (l *listener) Report(now time.Duration, replica int, report *selection.Report) {
	l.reports[replica] = append(l.reports[replica], *report)
	l.late = append(l.late, origin.Add(now).Sub(report.At))
}

func listen(t *testing.T, o Options) (*listener, *Result) {
	t.Helper()
	o.Workload = workload.Prompts{
		Rate: 20, Duration: 20 * time.Second, Prefixes: 10, PrefixTokens: 3000, Skew: 1,
		OwnTokens: 300, AnswerTokens: 50,
	}.Workload(1)
	if o.Replicas == nil {
		o.Replicas = replicas(4, engine.H100x8B)
	}
	l := &listener{}
	result, err := Run(o, l)
	if err != nil {
		t.Fatal(err)
	}
	return l, result
}

func TestReportsAreStale(t *testing.T) {
	l, _ := listen(t, Options{})
	for replica, reports := range l.reports {
		if n := len(reports); n < 17 || n > 23 {
			t.Errorf("replica %d reported %d times in 20 s, want about once a second", replica, n)
		}
	}
	for _, late := range l.late {
		if late < 25*time.Millisecond || late > 75*time.Millisecond {
			t.Errorf("report is %v old, want 25 to 75 ms", late)
		}
	}
	if l.reports[0][0].At.Equal(l.reports[1][0].At) {
		t.Error("two replicas are asked at the same time")
	}
}

func TestReportsTellWhatTheEngineTells(t *testing.T) {
	none := engine.H100x8B
	none.Dialect = engine.NoPages
	l, _ := listen(t, Options{Replicas: []engine.Profile{engine.H100x8B, engine.LlamaCpp, engine.Ollama, none}})
	tests := []struct {
		capacity, slots float64 // -1 for not told
		load            bool
	}{
		{400_000, -1, true},
		{65_536, 4, true},
		{16_384, 1, false},
		{-1, -1, false},
	}
	told := func(v float64) float64 {
		if selection.Known(v) {
			return v
		}
		return -1
	}
	for replica, want := range tests {
		last := l.reports[replica][len(l.reports[replica])-1]
		if got := told(last.CapacityTokens); got != want.capacity {
			t.Errorf("replica %d tells a capacity of %v, want %v", replica, got, want.capacity)
		}
		if got := told(last.Slots); got != want.slots {
			t.Errorf("replica %d tells %v slots, want %v", replica, got, want.slots)
		}
		load := selection.Known(last.Running) && selection.Known(last.Waiting) && last.PrefixHits > 0
		if load != want.load {
			t.Errorf("replica %d tells its load and hits: %v, want %v", replica, load, want.load)
		}
	}
}

func TestUsageAndMetricsCanBeOff(t *testing.T) {
	l, _ := listen(t, Options{Knowledge: &Knowledge{}})
	if len(l.reports) > 0 {
		t.Errorf("reports of %d replicas, want none", len(l.reports))
	}
	for _, usage := range l.usage {
		if usage.Checked || usage.Prompt != 0 || usage.Output == 0 {
			t.Fatalf("usage %+v, want the output's length alone", usage)
		}
	}
	ollama, _ := listen(t, Options{Replicas: replicas(4, engine.Ollama.Slowed(0.02))})
	for _, usage := range ollama.usage {
		if usage.Checked || usage.Prefill == 0 || usage.Prompt < 3000 {
			t.Fatalf("usage %+v, want the prompt's length and time", usage)
		}
	}
	l, _ = listen(t, Options{})
	for _, usage := range l.usage {
		if !usage.Checked || usage.Prompt < 3000 {
			t.Fatalf("usage %+v, want prompt and cached tokens", usage)
		}
	}
}

func TestForeignTrafficGoesPastTheRouter(t *testing.T) {
	all, _ := listen(t, Options{})
	half, result := listen(t, Options{Foreign: 0.5})
	if n := float64(half.turn) / float64(all.turn); n < 0.4 || n > 0.6 {
		t.Errorf("the router saw %.2f of the requests, want about half", n)
	}
	if result.All != half.turn || len(half.usage) != half.turn {
		t.Errorf("%d ended and %d told their usage, want the %d that the router placed", result.All, len(half.usage), half.turn)
	}
	seen := 0.0
	for _, reports := range half.reports {
		seen += reports[len(reports)-1].PrefixQueries
	}
	if own := 3300.0 * float64(half.turn); seen < 1.6*own {
		t.Errorf("replicas looked up %.0f tokens, want about twice the %.0f of the router's own requests", seen, own)
	}
}

func TestEventsShowInReports(t *testing.T) {
	l, result := listen(t, Options{Events: []Event{
		{At: 5 * time.Second, Kind: Crash, Replica: 0, For: 3 * time.Second},
		{At: 6 * time.Second, Kind: Sleep, Replica: 1, For: 4 * time.Second},
		{At: 7 * time.Second, Kind: Reset, Replica: 2},
	}})
	restarts, asleep := map[int]int{}, map[int]int{}
	for replica, reports := range l.reports {
		for _, r := range reports {
			if r.Restarted {
				restarts[replica]++
			}
			if r.Sleeping {
				asleep[replica]++
			}
			if down := r.At.Sub(origin); replica == 0 && down > 5*time.Second && down < 8*time.Second {
				t.Errorf("replica 0 reports at %v, while it is down", down)
			}
		}
	}
	if len(restarts) != 1 || restarts[0] != 1 {
		t.Errorf("restarts by replica: %v, want one of replica 0", restarts)
	}
	if len(asleep) != 1 || asleep[1] < 3 {
		t.Errorf("reports of sleep by replica: %v, want some of replica 1", asleep)
	}
	if l.failed < 10 || l.failed != result.Retried {
		t.Errorf("%d attempts failed and %d were retried, want all that went to replica 0 in 3 s", l.failed, result.Retried)
	}
	if result.All != result.Requests || result.All != len(l.usage) {
		t.Errorf("%d requests ended, want all", result.All)
	}
}
