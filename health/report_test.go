package health

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestRestartedSince(t *testing.T) {
	report := func(engine string, start, queries, hits float64) Report {
		r := unknown()
		r.Engine, r.StartTime, r.PrefixQueries, r.PrefixHits = engine, start, queries, hits
		return r
	}
	nan := math.NaN()
	tests := map[string]struct {
		before, after Report
		want          bool
	}{
		"counters go up":             {report("vllm", 100, 5, 1), report("vllm", 100, 6, 2), false},
		"nothing changes":            {report("vllm", 100, 5, 1), report("vllm", 100, 5, 1), false},
		"nothing is known":           {unknown(), unknown(), false},
		"later start":                {report("vllm", 100, 0, 0), report("vllm", 160, 0, 0), true},
		"earlier start":              {report("vllm", 100, 5, 1), report("vllm", 40, 6, 1), false},
		"start jitters":              {report("vllm", 100, 5, 1), report("vllm", 100.01, 6, 1), false},
		"start appears":              {report("vllm", nan, 5, 1), report("vllm", 100, 6, 1), false},
		"a counter goes down":        {report("vllm", nan, 5, 3), report("vllm", nan, 9, 1), true},
		"a counter vanishes":         {report("vllm", nan, 5, 3), report("vllm", nan, nan, nan), true},
		"a counter at zero vanishes": {report("vllm", nan, 0, 0), report("vllm", nan, nan, nan), false},
		"another engine":             {report("vllm", nan, nan, nan), report("sglang", nan, nan, nan), true},
	}
	for name, tt := range tests {
		if got := tt.after.RestartedSince(tt.before); got != tt.want {
			t.Errorf("%s: restarted %t, want %t", name, got, tt.want)
		}
	}
}

func TestGaugesAndDerivedCountersMayGoDown(t *testing.T) {
	before := unknown()
	for _, q := range before.quantities() {
		*q = 10
	}
	after := before
	after.Running, after.Waiting, after.KVUsage, after.ComputedTokens = 1, 0, 0, 9
	if after.RestartedSince(before) {
		t.Error("lower gauges are taken for a restart")
	}
}

func TestReportJSON(t *testing.T) {
	r := unknown()
	r.Engine, r.Running, r.PrefixCaching = "vllm", 3, Off
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"engine":"vllm"`, `"running":3`, `"prefix_caching":"off"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
	if strings.Contains(string(b), "waiting") {
		t.Errorf("%s has what is not known", b)
	}
}

func TestReportSurvivesJSON(t *testing.T) {
	for _, caching := range []Setting{Off, Unknown, On} {
		r := unknown()
		for i, q := range r.quantities() {
			*q = float64(i)
		}
		r.At = time.Unix(1_700_000_000, 0).UTC()
		r.Engine, r.Restarted, r.Sleeping, r.PrefixCaching = "vllm", true, true, caching
		r.SlotsAssumed, r.PrivateSlots = true, true
		r.Waiting = math.NaN()
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got Report
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if Known(got.Waiting) {
			t.Errorf("waiting is %v, want it not known", got.Waiting)
		}
		r.Waiting, got.Waiting = 0, 0 // NaN is not itself
		if got != r {
			t.Errorf("%+v came back as %+v", r, got)
		}
	}
}

func TestFill(t *testing.T) {
	facts, r := unknown(), unknown()
	facts.Slots, facts.Running, facts.PrefixCaching, facts.Sleeping = 4, 9, On, true
	facts.PrivateSlots = true
	r.Running, r.PrefixCaching = 1, Off
	r.fill(&facts)
	wantTold(t, r, map[string]float64{"running": 1, "slots": 4})
	if r.PrefixCaching != Off || !r.Sleeping || !r.PrivateSlots {
		t.Errorf("prefix caching %s, sleeping %t, private slots %t", r.PrefixCaching, r.Sleeping, r.PrivateSlots)
	}
}
