package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
	"github.com/seed5db0839e/caddy-cache-aware/integration/report"
)

func simulateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulate {--trace <file> | --workload <name> | --list}",
		Short: "Replay traffic through routing policies on a simulated fleet",
		Long: `
Replays a trace, or a made-up workload, through several routing policies on a
simulated fleet, and prints what clients would have seen under each. Time is
virtual: an hour of traffic takes seconds to minutes. cache_aware is the code
that runs in Caddy; the others are the published rules of other routers.

A trace is a file that "caddy cache-aware record" wrote, one in Mooncake's
format (JSON lines), or coding sessions as in kv-cache-tester; it may be packed
with gzip. Requests of a trace come at their own times, whatever became of those
before; --rate hastens or slows them.

Examples:

  caddy cache-aware simulate --workload coding-agents
  caddy cache-aware simulate --trace night.jsonl --replicas 4 --report night.html
  caddy cache-aware simulate --trace night.jsonl --rate 20 --policies cache_aware,round_robin --json`,
		Args: cobra.NoArgs,
	}
	s := &simulation{}
	flags := cmd.Flags()
	flags.StringVar(&s.trace, "trace", "", "Trace file to replay")
	flags.StringVar(&s.workload, "workload", "", "Workload to generate; --list names them")
	flags.IntVar(&s.draw.Replicas, "replicas", 8, "Number of replicas")
	flags.StringVar(&s.profile, "profile", "", "Kind of replica; --list names them (default: the workload's own, 8b-h100 for a trace)")
	flags.StringSliceVar(&s.policies, "policies", usualPolicies, "Policies to compare, separated by commas; --list names them")
	flags.Float64Var(&s.draw.Rate, "rate", 0, "Requests per second, or users where each waits for the answers (default: high load, or the trace's own)")
	flags.DurationVar(&s.draw.Duration, "duration", 0, "How long requests are sent, in virtual time (default: 10m, or the whole trace)")
	flags.Uint64Var(&s.draw.Seed, "seed", 1, "Seed of everything random")
	flags.StringVar(&s.draw.Traces, "traces", ".", "Folder of the files that some workloads need")
	flags.BoolVar(&s.json, "json", false, "Print the results as a JSON array, and nothing else, on standard output")
	flags.StringVar(&s.report, "report", "", "Write a page with table and plots to this HTML file")
	flags.BoolVar(&s.list, "list", false, "List workloads, policies and profiles")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		s.out, s.progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if s.list {
			return s.printLists()
		}
		if err := s.check(); err != nil {
			return err
		}
		return s.run()
	}
	return cmd
}

// simulation is one comparison of policies in virtual time.
type simulation struct {
	out, progress   io.Writer
	trace, workload string
	profile, report string
	policies        []string
	json, list      bool
	draw            fleet.Draw
}

// mostReplicas keeps a mistyped number from filling the memory.
const mostReplicas = 4096

// check rejects flags that make no sense.
func (s *simulation) check() error {
	switch d := &s.draw; {
	case s.trace == "" && s.workload == "":
		return errors.New("one of --trace and --workload must be given; --list names the workloads")
	case s.trace != "" && s.workload != "":
		return errors.New("only one of --trace and --workload can be given")
	case d.Replicas < 1 || d.Replicas > mostReplicas:
		return fmt.Errorf("--replicas must be 1 to %d: %d", mostReplicas, d.Replicas)
	case !(d.Rate >= 0 && d.Rate <= 1e6):
		return fmt.Errorf("--rate must be 0, for the default, or more and at most a million: %v", d.Rate)
	case d.Duration < 0:
		return fmt.Errorf("--duration must not be negative: %v", d.Duration)
	}
	if s.profile != "" {
		p, ok := engine.ProfileNamed(s.profile)
		if !ok {
			return fmt.Errorf("unknown profile %q, want one of %q", s.profile, profileNames())
		}
		s.draw.Profile = p
	}
	if err := s.checkReport(); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return checkPolicies(s.policies)
}

// checkReport finds out before a long run whether its report can be written.
func (s *simulation) checkReport() error {
	if s.report == "" {
		return nil
	}
	if info, err := os.Stat(s.report); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory", s.report)
	}
	file, err := s.createReport()
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// createReport makes a file for the page under another name, so that an old one
// stays whole when writing fails.
func (s *simulation) createReport() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(s.report), ".report-*.html")
}

func (s *simulation) run() error {
	drawn, err := s.drawn()
	if err != nil {
		return err
	}
	s.announce(drawn)
	bar := newBar(s.progress)
	outcomes, err := fleet.Comparison{
		Options: drawn.Options, Policies: ruleNames(s.policies), Seed: s.draw.Seed, Steps: seriesSteps, Progress: bar.show,
	}.Run()
	bar.end()
	if err != nil {
		return err
	}
	for i := range outcomes {
		outcomes[i].Policy = s.policies[i]
	}
	s.warn(drawn, outcomes)
	if err := s.print(outcomes); err != nil {
		return fmt.Errorf("printing results: %w", err)
	}
	if s.report != "" {
		return s.writeReport(drawn, outcomes)
	}
	return nil
}

// seriesSteps is the number of points of what a report shows over time.
const seriesSteps = 60

func (s *simulation) drawn() (*fleet.Drawn, error) {
	if s.trace != "" {
		return s.draw.Trace(s.trace)
	}
	scenario, err := fleet.ScenarioNamed(s.workload)
	if err != nil {
		return nil, err
	}
	drawn, err := s.draw.Scenario(scenario)
	if errors.Is(err, fleet.ErrNoTrace) {
		return nil, fmt.Errorf("%w; --traces names the folder of such files", err)
	}
	return drawn, err
}

func (s *simulation) print(outcomes []fleet.Outcome) error {
	if !s.json {
		return printOutcomes(s.out, outcomes)
	}
	rows := []fleet.Row{}
	for _, o := range outcomes {
		rows = append(rows, o.Row)
	}
	encoder := json.NewEncoder(s.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(rows)
}

func (s *simulation) writeReport(drawn *fleet.Drawn, outcomes []fleet.Outcome) error {
	file, err := s.createReport()
	if err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	defer os.Remove(file.Name()) // fails when all went well
	err = report.Report{
		Facts: s.facts(drawn), Command: s.commandLine(), Outcomes: outcomes, Warmup: drawn.Warmup, Until: drawn.Until,
	}.Write(file)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), s.report)
	}
	if err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	fmt.Fprintf(s.progress, "report: %s\n", s.report)
	return nil
}

// commandLine is what makes the same report again.
func (s *simulation) commandLine() string {
	parts := []string{"caddy cache-aware simulate"}
	add := func(flag, value string) { parts = append(parts, "--"+flag+" "+value) }
	if s.trace != "" {
		add("trace", filepath.Base(s.trace))
	} else {
		add("workload", s.workload)
	}
	add("replicas", fmt.Sprint(s.draw.Replicas))
	if s.profile != "" {
		add("profile", s.profile)
	}
	if s.draw.Rate > 0 {
		add("rate", fmt.Sprint(s.draw.Rate))
	}
	if s.draw.Duration > 0 {
		add("duration", s.draw.Duration.String())
	}
	add("seed", fmt.Sprint(s.draw.Seed))
	add("policies", strings.Join(s.policies, ","))
	add("report", filepath.Base(s.report))
	return strings.Join(parts, " ")
}

func profileNames() (names []string) {
	for _, p := range engine.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// usualPolicies are compared unless others are named.
var usualPolicies = []string{
	fleet.OwnPolicy, "round-robin", "least-requests", "session", "prefix-hash", "longest-prefix", "blend-3-2-2",
	fleet.PooledLRU, fleet.InfiniteCache,
}

// caddyNames are Caddy's names of policies that a baseline stands for.
var caddyNames = map[string]string{
	"least_conn": "least-requests", "random_choose": "power-of-two", "cookie": "session", "header": "session",
}

// ruleNames turns the names that users write into those of package fleet.
func ruleNames(policies []string) []string {
	names := make([]string, len(policies))
	for i, policy := range policies {
		names[i] = ruleName(policy)
	}
	return names
}

func ruleName(policy string) string {
	if name, ok := caddyNames[policy]; ok {
		return name
	}
	for _, name := range fleet.Names() {
		if strings.ReplaceAll(policy, "_", "-") == strings.ReplaceAll(name, "_", "-") {
			return name
		}
	}
	return policy
}

// checkPolicies rejects names that are unknown or given twice.
func checkPolicies(policies []string) error {
	if len(policies) == 0 {
		return errors.New("--policies must name at least one policy")
	}
	known, seen := fleet.Names(), map[string]string{}
	for i, name := range ruleNames(policies) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown policy %q, want some of %q", policies[i], known)
		}
		if first, ok := seen[name]; ok {
			return fmt.Errorf("policy %q is given twice, first as %q", policies[i], first)
		}
		seen[name] = policies[i]
	}
	return nil
}

// about writes a duration without its zero parts.
func about(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.3gs", d.Seconds())
	}
	text := d.Round(time.Second).String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
		if d%time.Hour == 0 {
			text = strings.TrimSuffix(text, "0m")
		}
	}
	return text
}
