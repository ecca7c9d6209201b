package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// simulate runs the subcommand as the command line would.
func simulate(t *testing.T, arguments ...string) (out, progress string, err error) {
	t.Helper()
	var printed, told bytes.Buffer
	cmd := simulateCommand()
	cmd.SetOut(&printed)
	cmd.SetErr(&told)
	cmd.SetArgs(arguments)
	err = cmd.Execute()
	return printed.String(), told.String(), err
}

const traceLines = `{"timestamp": 0, "input_length": 3000, "output_length": 20, "hash_ids": [1, 2, 3, 4, 5, 6]}
{"timestamp": 1000, "input_length": 3000, "output_length": 20, "hash_ids": [1, 2, 3, 4, 5, 7]}
{"timestamp": 2000, "input_length": 3000, "output_length": 20, "hash_ids": [1, 2, 3, 4, 5, 8]}
{"timestamp": 3000, "input_length": 3000, "output_length": 20, "hash_ids": [1, 2, 3, 4, 5, 9]}
`

func traceFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "night.jsonl")
	if err := os.WriteFile(path, []byte(traceLines), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSimulatePrintsJSONAndNothingElse(t *testing.T) {
	out, _, err := simulate(t, "--trace", traceFile(t), "--replicas", "2", "--policies", "cache_aware,round_robin,least_conn", "--seed", "3", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, error %v: %s", len(rows), err, out)
	}
	for i, policy := range []string{"cache_aware", "round_robin", "least_conn"} {
		row := rows[i]
		if row["policy"] != policy || row["workload"] != "night" || row["seed"] != 3.0 || row["requests"] != 3.0 {
			t.Errorf("row %d: %v", i, row)
		}
		for _, field := range []string{"ttft_mean_s", "ttft_p50_s", "ttft_p90_s", "ttft_p99_s", "e2e_mean_s", "hit_rate", "imbalance"} {
			if _, ok := row[field].(float64); !ok {
				t.Errorf("row of %s has no %s", policy, field)
			}
		}
		if len(row) != 11 {
			t.Errorf("row of %s has %d fields: %v", policy, len(row), row)
		}
	}
	// The first of four requests comes in the warm-up; the others share 2,560 of
	// 3,000 tokens with one that came a second before.
	if hits := rows[0]["hit_rate"].(float64); hits < 0.84 || hits > 0.86 {
		t.Errorf("hit rate of cache_aware: %v", hits)
	}
	if hits := rows[1]["hit_rate"].(float64); hits > 0.6 {
		t.Errorf("hit rate of round_robin: %v", hits)
	}
}

func TestSimulateIsTheSameForTheSameSeed(t *testing.T) {
	run := func(seed string) string {
		out, _, err := simulate(t, "--workload", "tool-heavy", "--replicas", "2", "--duration", "20s", "--seed", seed, "--json")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one := run("4")
	if one != run("4") {
		t.Error("the same seed gives other results")
	}
	if one == run("5") {
		t.Error("another seed gives the same results")
	}
}

func TestSimulatePrintsATableAndAReport(t *testing.T) {
	page := filepath.Join(t.TempDir(), "out.html")
	out, progress, err := simulate(t, "--workload", "documents", "--profile", "llamacpp-4slots", "--rate", "3",
		"--replicas", "2", "--duration", "1m", "--policies", "cache-aware,random", "--report", page)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out, "\n")
	for i, policy := range []string{"cache-aware", "random"} {
		if len(rows) < 3 || !strings.HasPrefix(strings.TrimSpace(rows[1+i]), policy+" ") {
			t.Fatalf("no row of %s:\n%s", policy, out)
		}
	}
	for _, want := range []string{"documents: ", "requests/s for 1m on 2 × llamacpp-4slots", "left out: they are longer than what every replica can hold", "report: " + page} {
		if !strings.Contains(progress, want) {
			t.Errorf("%q is not told in %q", want, progress)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 × llamacpp-4slots", "caddy cache-aware simulate --workload documents", "--rate 3 ", "cache-aware</th>"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	left, err := os.ReadDir(filepath.Dir(page))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files beside the page, error %v", len(left)-1, err)
	}
}

func TestSimulateTellsWhenNothingIsCounted(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "one.jsonl")
	line := `{"timestamp":0,"input_length":900,"output_length":10,"block_lengths":[900],"hash_ids":[1]}`
	if err := os.WriteFile(trace, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	_, progress, err := simulate(t, "--trace", trace, "--policies", "random,session")
	if want := "nothing is counted for random, session: no request came after the first 0.25s"; err != nil || !strings.Contains(progress, want) {
		t.Errorf("error %v, no %q in\n%s", err, want, progress)
	}
}

func TestSimulateListsWhatCanBeNamed(t *testing.T) {
	out, _, err := simulate(t, "--list")
	if err != nil {
		t.Fatal(err)
	}
	names := append(fleet.Policies(), profileNames()...)
	for _, s := range fleet.Scenarios() {
		names = append(names, s.Name)
	}
	for _, name := range names {
		if !strings.Contains(out, "  "+name) {
			t.Errorf("%s is not listed", name)
		}
	}
}

func TestSimulateRejectsNonsense(t *testing.T) {
	trace := traceFile(t)
	for _, c := range []struct {
		arguments string
		message   string
	}{
		{"", "one of --trace and --workload must be given"},
		{"--trace a --workload b", "only one of --trace and --workload"},
		{"--workload best", `unknown workload "best", want one of`},
		{"--trace " + trace + "x", "trace file not found: " + trace + "x"},
		{"--workload mooncake --traces /nowhere", "--traces names the folder of such files"},
		{"--trace " + trace + " --profile b200", `unknown profile "b200", want one of ["8b-h100"`},
		{"--trace " + trace + " --policies best", `unknown policy "best", want some of ["cache_aware"`},
		{"--trace " + trace + " --policies random,session,cookie", `policy "cookie" is given twice, first as "session"`},
		{"--trace " + trace + " --policies=", "at least one policy"},
		{"--trace " + trace + " --replicas 0", "--replicas must be 1 to 4096: 0"},
		{"--trace " + trace + " --rate -1", "--rate must be 0, for the default, or more and at most a million: -1"},
		{"--trace " + trace + " --rate NaN", "--rate must be 0, for the default, or more"},
		{"--trace " + trace + " --duration -1s", "--duration must not be negative: -1s"},
		{"--trace " + trace + " --report /nowhere/a.html", "--report: open /nowhere"},
		{"--trace " + trace + " --report /", "--report: / is a directory"},
		{"--trace " + trace + " --report /proc/a.html", "--report: open /proc"},
	} {
		out, _, err := simulate(t, strings.Fields(c.arguments)...)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%q: error %v, want %q", c.arguments, err, c.message)
		}
		if out != "" {
			t.Errorf("%q prints %q", c.arguments, out)
		}
	}
}

func TestUsualPoliciesAreKnown(t *testing.T) {
	if err := checkPolicies(usualPolicies); err != nil {
		t.Error(err)
	}
}

func TestTimesAreReadable(t *testing.T) {
	for d, want := range map[time.Duration]string{
		134 * time.Millisecond: "0.134s", 8*time.Second + 1: "8s", 90 * time.Second: "1m30s",
		time.Minute: "1m", time.Hour: "1h", 3537*time.Second + 1: "58m57s",
	} {
		if got := about(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}

func TestBarShowsEachPercentOnce(t *testing.T) {
	var out bytes.Buffer
	b := &bar{out: &out, terminal: true, begin: time.Now().Add(-10 * time.Second), shown: -1}
	for _, share := range []float64{0.1, 0.1001, 0.5, 0.5} {
		b.show(share)
	}
	b.end()
	if got := out.String(); got != "\r 10 %, about 1m30s left \r 50 %, about 10s left \r\x1b[K" {
		t.Errorf("%q", got)
	}
	var silent bytes.Buffer
	elsewhere := newBar(&silent)
	elsewhere.begin = b.begin
	elsewhere.show(0.5)
	elsewhere.end()
	if silent.Len() > 0 {
		t.Errorf("%q where there is no terminal", silent.String())
	}
}
