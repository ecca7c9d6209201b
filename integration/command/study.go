package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

func studyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "study",
		Short: "Compare all routing policies on all workloads",
		Long: `
Runs every policy on every workload in virtual time and prints how cache_aware
did in each against the best of the others, and how each policy compares with
cache_aware and with the best of each workload. By default with one seed, at high load, for ten
minutes each, which takes some minutes; --full takes three loads and the seeds 6
to 10, which takes hours. With --results it goes on where it was interrupted:

  caddy cache-aware study --traces traces
  caddy cache-aware study --full --traces traces --results full.jsonl

Loads are shares of the rate from which on the queues grow without end.`,
		Args: cobra.NoArgs,
	}
	s := &study{}
	flags := cmd.Flags()
	flags.BoolVar(&s.full, "full", false, "Three loads and the seeds 6 to 10 instead of one")
	flags.StringSliceVar(&s.workloads, "workloads", nil, "Workloads, separated by commas (default: all)")
	flags.StringSliceVar(&s.policies, "policies", nil, "Policies, separated by commas (default: all)")
	flags.Float64SliceVar(&s.loads, "loads", nil, "Loads, separated by commas (default: 0.8; with --full 0.3,0.8,1.05)")
	flags.UintSliceVar(&s.seeds, "seeds", nil, "Seeds, separated by commas (default: 6; with --full 6,7,8,9,10)")
	flags.IntVar(&s.replicas, "replicas", 8, "Number of replicas")
	flags.DurationVar(&s.duration, "duration", 10*time.Minute, "How long requests are sent, in virtual time; three times as long in coding-agents and six times in claude-code, whose sessions are longer")
	flags.StringVar(&s.traces, "traces", ".", "Folder of the trace files that some workloads need")
	flags.StringVar(&s.results, "results", "", "File to which every run is added; runs that are in it already are not done again")
	flags.BoolVar(&s.rows, "rows", false, "Print every run too")
	flags.BoolVar(&s.json, "json", false, "Print all runs as a JSON array, and nothing else, on standard output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		s.out, s.progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
		return s.run()
	}
	return cmd
}

// study is one comparison on many workloads.
type study struct {
	out, progress       io.Writer
	full, rows, json    bool
	workloads, policies []string
	loads               []float64
	seeds               []uint
	replicas            int
	duration            time.Duration
	traces, results     string
}

func (s *study) run() error {
	plan, err := s.plan()
	if err != nil {
		return err
	}
	if s.results != "" {
		store, err := openResults(s.results, s.replicas, s.duration)
		if err != nil {
			return err
		}
		defer store.file.Close()
		plan.Known, plan.Finished = store.known, store.add
	}
	bar := newBar(s.progress)
	plan.Progress = func(done, all int) { bar.show(float64(done) / float64(all)) }
	rows, missing, err := plan.Run()
	bar.end()
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		fmt.Fprintf(s.progress, "left out, since their traces are not in %s: %s\n", s.traces, strings.Join(missing, ", "))
	}
	return s.print(rows)
}

// plan fills in what the flags leave open.
func (s *study) plan() (fleet.Study, error) {
	plan := fleet.Study{
		Scenarios: fleet.Scenarios(), Loads: s.loads, Policies: ruleNames(s.policies),
		Replicas: s.replicas, Duration: s.duration, Traces: s.traces,
	}
	if len(s.workloads) > 0 {
		plan.Scenarios = nil
		for _, name := range s.workloads {
			scenario, err := fleet.ScenarioNamed(name)
			if err != nil {
				return plan, err
			}
			plan.Scenarios = append(plan.Scenarios, scenario)
		}
	}
	if len(plan.Policies) == 0 {
		plan.Policies = fleet.Names()
	}
	for _, seed := range s.seeds {
		plan.Seeds = append(plan.Seeds, uint64(seed))
	}
	if len(plan.Seeds) == 0 {
		plan.Seeds = []uint64{6}
		if s.full {
			plan.Seeds = []uint64{6, 7, 8, 9, 10}
		}
	}
	if len(plan.Loads) == 0 {
		plan.Loads = []float64{0.8}
		if s.full {
			plan.Loads = nil
			for _, load := range fleet.Loads {
				plan.Loads = append(plan.Loads, load.Share)
			}
		}
	}
	return plan, s.check(plan)
}

func (s *study) check(plan fleet.Study) error {
	switch {
	case s.replicas < 1 || s.replicas > mostReplicas:
		return fmt.Errorf("--replicas must be 1 to %d: %d", mostReplicas, s.replicas)
	case s.duration <= 0:
		return fmt.Errorf("--duration must be positive: %v", s.duration)
	case slices.Contains(plan.Seeds, 0):
		return errors.New("--seeds must not have 0")
	}
	if err := errors.Join(checkTwice("--workloads", s.workloads), checkTwice("--seeds", s.seeds), checkTwice("--loads", s.loads)); err != nil {
		return err
	}
	for _, load := range plan.Loads {
		if !(load > 0 && load <= 10) {
			return fmt.Errorf("--loads must be more than 0 and at most 10: %v", load)
		}
	}
	return checkPolicies(plan.Policies)
}

// checkTwice rejects a value that is given twice, which would count twice.
func checkTwice[T comparable](flag string, values []T) error {
	seen := map[T]bool{}
	for _, v := range values {
		if seen[v] {
			return fmt.Errorf("%s has %v twice", flag, v)
		}
		seen[v] = true
	}
	return nil
}

func (s *study) print(rows []fleet.Row) error {
	if s.json {
		encoder := json.NewEncoder(s.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	if s.rows {
		if err := fleet.WriteRows(s.out, rows); err != nil {
			return err
		}
		fmt.Fprintln(s.out)
	}
	if slices.ContainsFunc(rows, func(r fleet.Row) bool { return r.Policy == fleet.OwnPolicy }) {
		if err := fleet.WriteCells(s.out, rows); err != nil {
			return err
		}
		fmt.Fprintln(s.out)
	}
	return fleet.WriteSummary(s.out, rows)
}
