package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
	"github.com/seed5db0839e/caddy-cache-aware/integration/load"
	"github.com/seed5db0839e/caddy-cache-aware/integration/proxy"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/module"
)

// recordInto runs the record command until stop is called, which returns what it
// has printed.
func (r *rig) recordInto(file string, arguments ...string) (stop func(lines int) string) {
	r.t.Helper()
	ctx, interrupt := context.WithCancel(r.t.Context())
	told, telling := io.Pipe()
	cmd := module.RecordCommand()
	cmd.SetArgs(append([]string{file, "--address", r.admin}, arguments...))
	cmd.SetErr(telling)
	done := make(chan error, 1)
	go func() {
		done <- cmd.ExecuteContext(ctx)
		telling.Close()
	}()
	lines := bufio.NewReader(told)
	begin, err := lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(begin, "recording into "+file) {
		r.t.Fatalf("it tells %q, error %v", begin, err)
	}
	return func(want int) string {
		// A line is written when its request has ended, shortly after the client has its answer.
		becomes(func() bool {
			text, _ := os.ReadFile(file)
			return bytes.Count(text, []byte("\n")) >= want
		})
		interrupt()
		end, err := io.ReadAll(lines)
		if err := errors.Join(err, <-done); err != nil {
			r.t.Error(err)
		}
		return string(end)
	}
}

// TestRecordedTrafficIsReplayedAlike sends agents' traffic through Caddy, records
// it, and replays the recording on the same replicas in virtual time.
func TestRecordedTrafficIsReplayedAlike(t *testing.T) {
	profile := engine.H100x8B.Slowed(0.1)
	profile.Blocks = 4000
	r := newAdminRigOf(t, 3, engine.Options{Profile: profile, StreamInterval: 8}, "cache_capacity 64000")
	file := filepath.Join(t.TempDir(), "evening.jsonl")
	stop := r.recordInto(file)
	traffic := workload.Agents{
		Users: 12, Sessions: 30, Kinds: 4, ToolCount: 10, ToolTokens: 60, SystemTokens: 700,
		MinTurns: 2, MaxTurns: 6, AddedTokens: 300, AnswerTokens: 120, Think: 100 * time.Millisecond,
		LongEvery: 10, LongTokens: 4000,
	}.Workload(1)
	results := load.Client{URL: "http://" + r.address, Model: "simulated"}.Run(t.Context(), traffic)
	told := stop(len(results))
	prompt, cached := 0, 0
	for _, result := range results {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		prompt += result.PromptTokens
		cached += result.CachedTokens
	}
	seen := float64(cached) / float64(prompt)
	if !strings.Contains(told, file) || strings.Contains(told, "left out") {
		t.Errorf("it tells %q", told)
	}
	checkRecording(t, file, len(results), prompt, cached)

	drawn, err := fleet.Draw{Replicas: 3, Profile: profile}.Trace(file)
	if err != nil {
		t.Fatal(err)
	}
	drawn.Warmup = 0
	outcomes, err := fleet.Comparison{
		Options: drawn.Options, Policies: []string{fleet.OwnPolicy, "random"}, Seed: 1, Steps: 10,
	}.Run()
	if err != nil {
		t.Fatal(err)
	}
	replayed, scattered := outcomes[0], outcomes[1]
	t.Logf("hit rate %.3f seen, %.3f replayed, %.3f at random", seen, replayed.HitRate, scattered.HitRate)
	if replayed.Requests != len(results) {
		t.Errorf("%d requests replayed, want %d", replayed.Requests, len(results))
	}
	if total := float64(replayed.Result.PromptTokens) / float64(prompt); total < 0.98 || total > 1.02 {
		t.Errorf("prompts are %.3f as long as they were", total)
	}
	if d := replayed.HitRate - seen; d < -0.08 || d > 0.08 {
		t.Errorf("hit rate %.3f seen, %.3f replayed", seen, replayed.HitRate)
	}
	if scattered.HitRate > seen-0.1 {
		t.Errorf("hit rate %.3f at random: the traffic does not tell policies apart", scattered.HitRate)
	}
}

// checkRecording compares a recording with what the clients saw.
func checkRecording(t *testing.T, file string, requests, prompt, cached int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"simulated", "replica", "127.0.0.1", "tool", "the"} {
		if bytes.Contains(text, []byte(word)) {
			t.Errorf("%q is in the recording", word)
		}
	}
	for line := range bytes.Lines(text) {
		var read struct {
			Input  int  `json:"input_length"`
			Cached *int `json:"cached_length"`
		}
		if err := json.Unmarshal(line, &read); err != nil || read.Cached == nil {
			t.Fatalf("line %s: %v", line, err)
		}
		requests--
		prompt -= read.Input
		cached -= *read.Cached
	}
	if requests != 0 || prompt != 0 || cached != 0 {
		t.Errorf("%d requests, %d prompt tokens and %d cached ones are missing", requests, prompt, cached)
	}
}

// TestRecordingOutlivesReloads also outlives the admin endpoint's limit of ten
// seconds for a request.
func TestRecordingOutlivesReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes eleven seconds")
	}
	r := newAdminRigOf(t, 1, engine.Options{Profile: engine.H100x8B.Slowed(0.1)}, "")
	file := filepath.Join(t.TempDir(), "long.jsonl")
	stop := r.recordInto(file)
	r.send(t.Context(), chat{User: text(1, 100), MaxTokens: 5})
	r.load()
	r.send(t.Context(), chat{User: text(2, 100), MaxTokens: 5})
	time.Sleep(10500 * time.Millisecond)
	r.send(t.Context(), chat{User: text(3, 100), MaxTokens: 5})
	stop(3)
	lines, err := os.ReadFile(file)
	if err != nil || bytes.Count(lines, []byte("\n")) != 3 {
		t.Errorf("%d lines, error %v:\n%s", bytes.Count(lines, []byte("\n")), err, lines)
	}
}

// A recording ends by itself with its duration, or with Caddy.
func TestRecordingEndsByItself(t *testing.T) {
	r := newAdminRigOf(t, 1, engine.Options{Profile: engine.H100x8B}, "")
	for _, c := range []struct {
		name, duration string
		end            func()
		message        string // a regular expression
	}{
		{"duration", "200ms", func() {}, `^0 requests in \d+s: [^,]*$`},
		{"policy gone", "0s", func() {
			if _, err := proxy.Start(proxy.Options{Address: r.address, Site: "respond ok", Admin: r.admin}); err != nil {
				t.Error(err)
			}
		}, "ended by Caddy"},
	} {
		told, telling := io.Pipe()
		cmd := module.RecordCommand()
		cmd.SetArgs([]string{filepath.Join(t.TempDir(), "a.jsonl"), "--address", r.admin, "--duration", c.duration})
		cmd.SetErr(telling)
		go func() { telling.CloseWithError(cmd.Execute()) }()
		lines := bufio.NewReader(told)
		if begin, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("%s: it tells %q, error %v", c.name, begin, err)
		}
		c.end()
		if end, err := io.ReadAll(lines); err != nil || !regexp.MustCompile(c.message).Match(bytes.TrimSpace(end)) {
			t.Errorf("%s: it tells %q, error %v, want %q", c.name, end, err, c.message)
		}
	}
}

func TestRecordRefusesToOverwrite(t *testing.T) {
	r := newAdminRigOf(t, 1, engine.Options{Profile: engine.H100x8B}, "")
	file := filepath.Join(t.TempDir(), "old.jsonl")
	if err := os.WriteFile(file, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments []string
		message   string
	}{
		{[]string{file}, "creating recording: open " + file},
		{[]string{file + "2", "--state", "other"}, `no such state`},
		{[]string{file + "2", "--duration", "-1s"}, "--duration must not be negative: -1s"},
	} {
		cmd := module.RecordCommand()
		cmd.SetArgs(append(c.arguments, "--address", r.admin))
		cmd.SetErr(&bytes.Buffer{})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%v: error %v, want %q", c.arguments, err, c.message)
		}
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files, error %v", len(left), err)
	}
	if text, _ := os.ReadFile(file); string(text) != "old\n" {
		t.Errorf("the old file holds %q", text)
	}
}
