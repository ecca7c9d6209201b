package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// announce says what is about to be run.
func (s *simulation) announce(drawn *fleet.Drawn) {
	fmt.Fprintf(s.progress, "%s: %s for %s on %s\n", drawn.Workload.Name, rateOf(drawn), about(drawn.Until), fleetOf(drawn))
	if drawn.Left > 0 {
		fmt.Fprintf(s.progress, "%s requests are left out: they are longer than what every replica can hold\n",
			humanize.Comma(int64(drawn.Left)))
	}
}

// warn says why figures are zero: what is too short has nothing to count.
func (s *simulation) warn(drawn *fleet.Drawn, outcomes []fleet.Outcome) {
	var empty []string
	for _, o := range outcomes {
		if o.Requests == 0 {
			empty = append(empty, o.Policy)
		}
	}
	if len(empty) > 0 {
		fmt.Fprintf(s.progress, "nothing is counted for %s: no request came after the first %s, which warm the caches up\n",
			strings.Join(empty, ", "), about(drawn.Warmup))
	}
}

func rateOf(drawn *fleet.Drawn) string {
	if drawn.Workload.Users > 0 {
		return fmt.Sprintf("%d users", drawn.Workload.Users)
	}
	return fmt.Sprintf("%.3g requests/s", drawn.Rate)
}

// fleetOf counts the replicas of each profile.
func fleetOf(drawn *fleet.Drawn) string {
	var names, parts []string
	counts := map[string]int{}
	for _, p := range drawn.Replicas {
		if counts[p.Name]++; counts[p.Name] == 1 {
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// capacities are the least and most tokens of KV cache that a replica has.
func capacities(drawn *fleet.Drawn) string {
	least, most := drawn.Replicas[0].Capacity(), 0
	for _, p := range drawn.Replicas {
		least, most = min(least, p.Capacity()), max(most, p.Capacity())
	}
	text := humanize.Comma(int64(most)) + " tokens"
	if least < most {
		text = humanize.Comma(int64(least)) + " to " + text
	}
	return text
}

// facts describe the run on its page.
func (s *simulation) facts(drawn *fleet.Drawn) [][2]string {
	facts := [][2]string{
		{"traffic", drawn.Workload.Name},
		{"load", rateOf(drawn)},
		{"duration", about(drawn.Until)},
		{"replicas", fleetOf(drawn)},
		{"KV cache each", capacities(drawn)},
		{"seed", fmt.Sprint(s.draw.Seed)},
	}
	if drawn.Left > 0 {
		facts = append(facts, [2]string{"left out as too long", humanize.Comma(int64(drawn.Left)) + " requests"})
	}
	return facts
}

// printOutcomes prints a row for each policy.
func printOutcomes(out io.Writer, outcomes []fleet.Outcome) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "policy\trequests\tTTFT mean\tp50\tp90\tp99\tend to end\thit rate\timbalance\t")
	for _, o := range outcomes {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%.1f %%\t%.2f\t\n", o.Policy, o.Requests,
			span(o.TTFTMean), span(o.TTFTP50), span(o.TTFTP90), span(o.TTFTP99), span(o.E2EMean), 100*o.HitRate, o.Imbalance)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, `
TTFT: time to first token. End to end: mean time to the last token. Hit rate: share of the
prompts' tokens that were in the replica's KV cache. Imbalance: the most prompt tokens that
a replica computed, over the mean. pooled-lru and infinite-cache are no policies but bounds:
one cache for all, and no waiting. Nor is oracle, which knows what no router can.`)
	return err
}

// span writes a time so that times of the same table can be compared.
func span(seconds float64) string {
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	case seconds < 100:
		return fmt.Sprintf("%.1f s", seconds)
	default:
		return fmt.Sprintf("%.0f s", seconds)
	}
}

// printLists prints what can be named.
func (s *simulation) printLists() error {
	table := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "Workloads, each with the profile that it is made for:")
	for _, scenario := range fleet.Scenarios() {
		note := ""
		if len(scenario.Fleet) > 0 {
			note = "and others"
		}
		if scenario.Trace != "" {
			note = "needs " + scenario.Trace
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", scenario.Name, scenario.Profile.Name, note)
	}
	fmt.Fprintln(table, "\nPolicies:")
	for _, policy := range fleet.Policies() {
		fmt.Fprintf(table, "  %s\n", policy)
	}
	fmt.Fprintln(table, "\nFor comparison, which can stand among the policies:")
	fmt.Fprintf(table, "  %s\tcache_aware if it knew what all replicas hold and have to do\n", fleet.Oracle)
	fmt.Fprintf(table, "  %s\tone cache of the size of all, least recently used first out, and no waiting\n", fleet.PooledLRU)
	fmt.Fprintf(table, "  %s\tone cache without end, and no waiting\n", fleet.InfiniteCache)
	fmt.Fprintln(table, "\nProfiles, each with the size of its KV cache and the time to prefill 1,000 tokens:")
	for _, p := range engine.Profiles() {
		fmt.Fprintf(table, "  %s\t%s tokens\t%s\n", p.Name, humanize.Comma(int64(p.Capacity())),
			(1000*p.PerPrefillToken + p.StepBase).Round(time.Millisecond))
	}
	return table.Flush()
}

// bar shows on a terminal how far a simulation is.
type bar struct {
	out      io.Writer
	terminal bool
	begin    time.Time
	shown    int // percent
}

func newBar(out io.Writer) *bar {
	return &bar{out: out, terminal: isTerminal(out), begin: time.Now(), shown: -1}
}

// show writes each percent once, with the time that is left, after a second.
func (b *bar) show(share float64) {
	percent, passed := int(100*share), time.Since(b.begin)
	if !b.terminal || percent <= b.shown || passed < time.Second {
		return
	}
	b.shown = percent
	left := time.Duration(float64(passed) * (1/share - 1)).Round(time.Second)
	fmt.Fprintf(b.out, "\r%3d %%, about %v left ", percent, left)
}

func (b *bar) end() {
	if b.shown >= 0 {
		fmt.Fprint(b.out, "\r\033[K")
	}
}
