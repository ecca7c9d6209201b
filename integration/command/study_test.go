package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// runStudy runs the subcommand on a small study and what is added to it.
func runStudy(t *testing.T, arguments ...string) (out string, err error) {
	t.Helper()
	var printed bytes.Buffer
	cmd := studyCommand()
	cmd.SetOut(&printed)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{
		"--workloads", "four-slots", "--policies", "random,cache_aware,pooled-lru", "--replicas", "2", "--duration", "20s",
	}, arguments...))
	err = cmd.Execute()
	return printed.String(), err
}

func TestStudyPrintsTables(t *testing.T) {
	out, err := runStudy(t, "--rows")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"four-slots  0.80     6       random", "best other", "ratio to cache_aware", "cache_aware to the best other"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestStudyGoesOnWhereItWasInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.jsonl")
	whole, err := runStudy(t, "--full", "--seeds", "6,7", "--results", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []fleet.Row
	if err := json.Unmarshal([]byte(whole), &rows); err != nil || len(rows) != 18 {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	text, err := os.ReadFile(file)
	if err != nil || bytes.Count(text, []byte("\n")) != 19 {
		t.Fatalf("%d lines, error %v", bytes.Count(text, []byte("\n")), err)
	}
	// Interrupted in the middle of the ninth row.
	lines := bytes.SplitAfter(text, []byte("\n"))
	half := append(bytes.Join(lines[:9], nil), lines[9][:20]...)
	if err := os.WriteFile(file, half, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := runStudy(t, "--full", "--seeds", "6,7", "--results", file, "--json")
	if err != nil || again != whole {
		t.Errorf("error %v, the same results: %v", err, again == whole)
	}
	if text, err := os.ReadFile(file); err != nil || bytes.Count(text, []byte("\n")) != 19 {
		t.Errorf("%d lines in the end, error %v", bytes.Count(text, []byte("\n")), err)
	}
	if _, err := runStudy(t, "--results", file, "--replicas", "3"); err == nil || !strings.Contains(err.Error(), "they are of 2 replicas over 20 s, not of 3 over 20 s") {
		t.Errorf("error %v", err)
	}
}

// Files of the same study, one after the other, are one.
func TestStudyReadsFilesPutTogether(t *testing.T) {
	folder := t.TempDir()
	var together []byte
	for _, seed := range []string{"6", "7"} {
		file := filepath.Join(folder, seed)
		if _, err := runStudy(t, "--seeds", seed, "--results", file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		together = append(together, text...)
	}
	file := filepath.Join(folder, "both")
	if err := os.WriteFile(file, together, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runStudy(t, "--seeds", "6,7", "--results", file); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || !bytes.Equal(text, together) {
		t.Errorf("error %v, ran again and added\n%s", err, bytes.TrimPrefix(text, together))
	}
}

func TestStudyRejectsNonsense(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	head := "{\"replicas\":2,\"duration_s\":20}\n"
	broken := write("broken", head+"hello\n")
	headless := write("headless", "{\"policy\":\"random\"}\n")
	mixed := write("mixed", head+"{\"replicas\":3,\"duration_s\":20}\n")
	for _, c := range []struct{ arguments, message string }{
		{"--workloads best", `unknown workload "best"`},
		{"--policies best", `unknown policy "best"`},
		{"--replicas 0", "--replicas must be 1 to 4096: 0"},
		{"--duration 0s", "--duration must be positive: 0s"},
		{"--seeds 0", "--seeds must not have 0"},
		{"--seeds 6,7,6", "--seeds has 6 twice"},
		{"--loads 0.8,0.80", "--loads has 0.8 twice"},
		{"--workloads chat,chat", "--workloads has chat twice"},
		{"--loads 0", "--loads must be more than 0 and at most 10: 0"},
		{"--results /nowhere/a", "opening results: open /nowhere/a"},
		{"--results " + broken, "reading results in " + broken},
		{"--results " + headless, "they are of 0 replicas over 0 s"},
		{"--results " + mixed, "they are of 3 replicas over 20 s"},
	} {
		if _, err := runStudy(t, strings.Fields(c.arguments)...); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%q: error %v, want %q", c.arguments, err, c.message)
		}
	}
}

// A file that a study cannot go on with is left as it is.
func TestStudySparesOtherFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other")
	for _, text := range []string{
		"one line without an end", "a line\nand one without an end",
		"{\"replicas\":3,\"duration_s\":20}\n{\"policy\":\"ran",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := runStudy(t, "--results", file); err == nil || !strings.Contains(err.Error(), "reading results in "+file) {
			t.Errorf("%q: error %v", text, err)
		}
		if left, err := os.ReadFile(file); err != nil || string(left) != text {
			t.Errorf("%q became %q, error %v", text, left, err)
		}
	}
}
