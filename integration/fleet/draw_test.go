package fleet

import (
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

func TestDrawTakesTheScenariosHighLoad(t *testing.T) {
	s, err := ScenarioNamed("no-reuse")
	if err != nil {
		t.Fatal(err)
	}
	high := 0.8 * s.Saturation * 4
	for _, c := range []struct {
		name string
		draw Draw
		rate float64
	}{
		{"its own profile", Draw{Replicas: 4, Seed: 1}, high},
		{"a slower one", Draw{Replicas: 4, Seed: 1, Profile: engine.T4x8B}, high / 20},
		{"a given rate", Draw{Replicas: 4, Seed: 1, Rate: 3}, 3},
	} {
		drawn, err := c.draw.Scenario(s)
		if err != nil {
			t.Fatal(err)
		}
		if drawn.Until != 10*time.Minute || len(drawn.Replicas) != 4 {
			t.Errorf("%s: until %v on %d replicas", c.name, drawn.Until, len(drawn.Replicas))
		}
		if math.Abs(drawn.Rate/c.rate-1) > 0.1 {
			t.Errorf("%s: %.2f requests/s, want about %.2f", c.name, drawn.Rate, c.rate)
		}
	}
}

// A user's own profile is that of all replicas, of a mixed fleet too.
func TestDrawTakesAProfileForAll(t *testing.T) {
	s, err := ScenarioNamed("mixed-hardware")
	if err != nil {
		t.Fatal(err)
	}
	own := Draw{Replicas: 8, Seed: 1, Duration: 10 * time.Second}
	given := own
	given.Profile = engine.T4x8B
	for _, c := range []struct {
		draw  Draw
		kinds int
	}{{own, 3}, {given, 1}} {
		drawn, err := c.draw.Scenario(s)
		if err != nil {
			t.Fatal(err)
		}
		if kinds := distinct(drawn.Replicas); len(kinds) != c.kinds || c.kinds == 1 && kinds[0] != engine.T4x8B {
			t.Errorf("profile %q: replicas are %+v", c.draw.Profile.Name, kinds)
		}
	}
	if s.Fleet == nil {
		t.Error("the scenario itself was changed")
	}
}

func TestDrawLeavesOutWhatDoesNotFit(t *testing.T) {
	s, err := ScenarioNamed("documents")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := Draw{Replicas: 2, Rate: 5, Seed: 1, Profile: engine.LlamaCpp, Duration: time.Minute}.Scenario(s)
	if err != nil {
		t.Fatal(err)
	}
	share := float64(drawn.Left) / float64(drawn.Left+drawn.Workload.Requests())
	if share < 0.02 || share > 0.2 {
		t.Errorf("%.2f of the requests left out, want about 0.08", share)
	}
	runOn(t, "round-robin", drawn.Options)
}

func TestDrawTrace(t *testing.T) {
	lines := ""
	for range 3 {
		lines += `{"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[1,2]}` + "\n"
	}
	lines += `{"timestamp":4000,"input_length":5120000,"output_length":5,"hash_ids":[` +
		strings.TrimSuffix(strings.Repeat("1,", 10_000), ",") + "]}\n"
	lines += `{"timestamp":8000,"input_length":600,"output_length":5,"hash_ids":[1,2]}` + "\n"
	path := filepath.Join(t.TempDir(), "evening.jsonl.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(file)
	if _, err := packed.Write([]byte(lines)); err != nil {
		t.Fatal(err)
	}
	packed.Close()
	file.Close()
	drawn, err := Draw{Replicas: 2}.Trace(path)
	if err != nil {
		t.Fatal(err)
	}
	if drawn.Workload.Name != "evening" || drawn.Left != 1 || drawn.Until != 8*time.Second+1 || math.Abs(drawn.Rate-0.5) > 1e-6 {
		t.Errorf("%s until %v at %.3f requests/s, %d left out", drawn.Workload.Name, drawn.Until, drawn.Rate, drawn.Left)
	}
	faster, err := Draw{Replicas: 2, Rate: 5, Duration: time.Second}.Trace(path)
	if err != nil {
		t.Fatal(err)
	}
	if faster.Workload.End() != time.Second || faster.Until != time.Second {
		t.Errorf("at 5 requests/s it lasts %v, run until %v, want 1s", faster.Workload.End(), faster.Until)
	}
	if _, err := (Draw{Replicas: 1}).Trace(path + "x"); !errors.Is(err, ErrNoTrace) {
		t.Errorf("error %v", err)
	}
}

func TestNothingFits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	line := `{"timestamp":0,"input_length":4000,"output_length":13000,"hash_ids":[1,2,3,4,5,6,7,8]}`
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Draw{Replicas: 1, Profile: engine.LlamaCpp}.Trace(path)
	if err == nil || !strings.Contains(err.Error(), "no request of at most 16384 tokens, the most that llamacpp-4slots can hold") {
		t.Errorf("error %v", err)
	}
}

func TestComparison(t *testing.T) {
	s, err := ScenarioNamed("tool-heavy")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := Draw{Replicas: 3, Seed: 2, Duration: 20 * time.Second}.Scenario(s)
	if err != nil {
		t.Fatal(err)
	}
	told := []float64{0}
	policies := []string{"round-robin", OwnPolicy, "session"}
	outcomes, err := Comparison{
		Options: drawn.Options, Policies: policies, Seed: 2, Steps: 10,
		Progress: func(share float64) { told = append(told, share) },
	}.Run()
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		if o.Policy != policies[i] || o.Workload != "tool-heavy" || o.Seed != 2 || o.Requests == 0 || len(o.Series.PromptTokens) != 10 {
			t.Errorf("outcome %d: %+v", i, o.Row)
		}
		if i > 0 && o.Requests != outcomes[0].Requests {
			t.Errorf("%d requests under %s, %d under %s", o.Requests, o.Policy, outcomes[0].Requests, policies[0])
		}
	}
	for i := 1; i < len(told); i++ {
		if told[i] <= told[i-1] {
			t.Errorf("progress %v", told[i-1:i+1])
		}
	}
	if last := told[len(told)-1]; last != 1 {
		t.Errorf("progress ended at %v", last)
	}
	_, err = Comparison{Options: drawn.Options, Policies: []string{"best"}, Steps: 1}.Run()
	if err == nil || !strings.Contains(err.Error(), `unknown policy "best"`) {
		t.Errorf("error %v", err)
	}
}
