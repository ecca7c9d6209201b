package fleet

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// Scenario is a workload on a fleet that fits it.
type Scenario struct {
	Name string
	// Profile is that of all replicas, or of most.
	Profile engine.Profile
	// Fleet lists the profiles of a mixed fleet, repeated as often as needed; nil
	// where all replicas are alike.
	Fleet []engine.Profile
	// Saturation is the rate per second (or the number of users) per replica
	// from which on the queues of eight replicas grow without end, or answers
	// take several times as long, under the best rules; measured.
	Saturation float64
	// Stretch is how many times as long as the others it is run, 0 for once:
	// where sessions last longer than ten minutes, those would show beginnings
	// only, and few requests.
	Stretch int
	// Trace is the file that it needs, empty for none.
	Trace string

	make func(p plan) (*workload.Workload, error)
}

// plan is what a scenario is drawn for.
type plan struct {
	rate     float64 // or users
	seed     uint64
	duration time.Duration
	trace    io.Reader
	profile  engine.Profile
}

// Loads are the shares of saturation that a study runs.
var Loads = []struct {
	Name  string
	Share float64
}{{"light", 0.3}, {"high", 0.8}, {"over", 1.05}}

// warmup is how much of a run is not counted: a quarter at most.
const warmup = 2 * time.Minute

// ErrNoTrace says that a scenario's trace is not there.
var ErrNoTrace = fmt.Errorf("trace file not found")

// Options draw the scenario for so many replicas at a share of its saturation,
// for that long, and in the folder where traces are.
func (s Scenario) Options(replicas int, share float64, seed uint64, duration time.Duration, traces string) (Options, error) {
	p := plan{
		rate: s.Saturation * float64(replicas) * share, seed: seed, duration: duration, profile: s.Profile,
	}
	if s.Trace != "" {
		file, err := openTrace(tracePath(traces, s.Trace))
		if err != nil {
			return Options{}, err
		}
		defer file.Close()
		p.trace = file
	}
	w, err := s.make(p)
	if err != nil {
		return Options{}, fmt.Errorf("drawing workload %s: %w", s.Name, err)
	}
	w.Name = s.Name
	o := Options{Workload: w, Until: duration, Warmup: min(warmup, duration/4)}
	for i := range replicas {
		o.Replicas = append(o.Replicas, s.replica(i))
	}
	return o, nil
}

// stretched is how long it is run where others are run for d.
func (s Scenario) stretched(d time.Duration) time.Duration {
	return d * time.Duration(max(s.Stretch, 1))
}

// replica is the profile of the i-th replica.
func (s Scenario) replica(i int) engine.Profile {
	if len(s.Fleet) == 0 {
		return s.Profile
	}
	return s.Fleet[i%len(s.Fleet)]
}

type traceFile struct {
	io.Reader
	file *os.File
}

func (t traceFile) Close() error { return t.file.Close() }

// openTrace opens a trace file, which may be compressed.
func openTrace(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, fmt.Errorf("%w: %s", ErrNoTrace, path)
		}
		return nil, fmt.Errorf("opening trace: %w", err)
	}
	buffered := bufio.NewReader(file)
	if head, _ := buffered.Peek(2); string(head) != "\x1f\x8b" {
		return traceFile{buffered, file}, nil
	}
	reader, err := gzip.NewReader(buffered)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("opening trace %s: %w", path, err)
	}
	return traceFile{reader, file}, nil
}

// Scenarios are the workloads of the study.
func Scenarios() []Scenario {
	return slices.Concat(prefixScenarios(), sessionScenarios(), mixedScenarios(), unsteadyScenarios())
}

// ScenarioNamed finds a scenario by its name.
func ScenarioNamed(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("unknown workload %q, want one of %q", name, names)
}

func prefixScenarios() []Scenario {
	return []Scenario{
		// Long system prompts, all alike in weight: 900k tokens, more than twice
		// what one replica holds.
		{Name: "150-prefixes", Profile: engine.H100x8B, Saturation: 42 / 8.0, make: prompts(workload.Prompts{
			Prefixes: 150, PrefixTokens: 6000, OwnTokens: 1200, AnswerTokens: 300,
		})},
		// Tool schemas of many sizes of clientele, on replicas with 100k tokens.
		{Name: "zipf-small-caches", Profile: engine.H100x8BSmall, Saturation: 72 / 8.0, make: prompts(workload.Prompts{
			Prefixes: 400, PrefixTokens: 4000, Skew: 1, OwnTokens: 400, AnswerTokens: 150,
		})},
		// A rare prefix gets 60 % of the requests in the middle of the run.
		{Name: "hotspot", Profile: engine.H100x8B, Saturation: 95 / 8.0, make: prompts(workload.Prompts{
			Prefixes: 100, PrefixTokens: 4000, Skew: 0.6, OwnTokens: 500, AnswerTokens: 200, HotShare: 0.6,
		})},
		// Documents of 30k to 90k tokens among short prompts.
		{Name: "documents", Profile: engine.H100x8B, Saturation: 22 / 8.0, make: prompts(workload.Prompts{
			Prefixes: 50, PrefixTokens: 2000, Skew: 0.8, OwnTokens: 300, AnswerTokens: 200,
			DocumentShare: 0.08, DocumentTokens: 60_000,
		})},
		{Name: "no-reuse", Profile: engine.H100x8B, Saturation: 41 / 8.0, make: prompts(workload.Prompts{
			OwnTokens: 3000, AnswerTokens: 300,
		})},
		// Half of the requests on the first two prefixes.
		{Name: "tool-heavy", Profile: engine.H100x8B, Saturation: 68 / 8.0, make: prompts(workload.Prompts{
			Prefixes: 60, PrefixTokens: 9000, Skew: 1.35, OwnTokens: 800, AnswerTokens: 150,
		})},
		// llama.cpp boxes: four slots each, which remember one sequence each.
		{Name: "four-slots", Profile: engine.LlamaCpp, Saturation: 5.5 / 8.0, make: prompts(workload.Prompts{
			Prefixes: 12, PrefixTokens: 3000, Skew: 0.8, OwnTokens: 300, AnswerTokens: 200,
		})},
	}
}

func prompts(template workload.Prompts) func(plan) (*workload.Workload, error) {
	return func(p plan) (*workload.Workload, error) {
		template := template
		template.Rate, template.Duration = p.rate, p.duration
		template.HotFrom, template.HotUntil = p.duration*4/10, p.duration*8/10
		return template.Workload(p.seed), nil
	}
}

func sessionScenarios() []Scenario {
	return []Scenario{
		// Agents of 12 kinds that call tools every few seconds.
		{Name: "coding-agents", Profile: engine.H100x8B, Saturation: 70 / 8.0, Stretch: 3, make: agents(workload.Agents{
			Kinds: 12, ToolCount: 20, ToolTokens: 300, SystemTokens: 3000, MinTurns: 10, MaxTurns: 60,
			AddedTokens: 1200, AnswerTokens: 300, Think: 5 * time.Second, LongEvery: 40, LongTokens: 40_000,
		})},
		// People who chat: half a minute between an answer and the next question.
		{Name: "chat", Profile: engine.H100x8B, Saturation: 1500 / 8.0, make: agents(workload.Agents{
			Kinds: 3, ToolCount: 1, ToolTokens: 100, SystemTokens: 1200, MinTurns: 2, MaxTurns: 16,
			AddedTokens: 250, AnswerTokens: 350, Think: 30 * time.Second,
		})},
		{Name: "mooncake", Profile: engine.H100x8B, Saturation: 10 / 8.0,
			Trace: "mooncake_fast25_conversation_trace.jsonl.gz", make: mooncake},
		{Name: "claude-code", Profile: engine.H100x8B, Saturation: 35 / 8.0, Stretch: 6,
			Trace: "claude_code_sessions.jsonl.gz", make: coding},
	}
}

func agents(template workload.Agents) func(plan) (*workload.Workload, error) {
	return func(p plan) (*workload.Workload, error) {
		return populated(template, p).Workload(p.seed), nil
	}
}

// mooncakeRate is the trace's own rate of requests per second.
const mooncakeRate = 3.40

func mooncake(p plan) (*workload.Workload, error) {
	return workload.Mooncake{
		Bucket: 3 * time.Second, Speed: p.rate / mooncakeRate, Duration: p.duration,
		MaxTokens: p.profile.MaxTokens(),
	}.Read(p.trace)
}

func coding(p plan) (*workload.Workload, error) {
	users := max(1, int(math.Round(p.rate)))
	return workload.Coding{
		Users: users, Sessions: 8 * users, MaxThink: 2 * time.Minute,
		MaxTokens: 200_000, Ramp: min(warmup, p.duration/4),
	}.Read(p.trace, p.seed)
}

func tracePath(folder, file string) string { return filepath.Join(folder, file) }
