package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/load"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Compare selection policies on simulated LLM replicas",
		Long: `
Starts four simulated LLM replicas and this Caddy in front of them on free
loopback ports, and sends the same agent traffic through the selection policies
round_robin, least_conn and cache_aware in turn, each time with fresh replicas:
conversations that grow with every turn, begin with shared tool schemas and
system prompts, and stand beside a few long prompts that share nothing. Prints
what the clients saw. Takes less than a minute; nothing is written to disk.`,
		Args: cobra.NoArgs,
	}
	asJSON := cmd.Flags().Bool("json", false, "Print the results as a JSON array, and nothing else, on standard output")
	keep := cmd.Flags().Bool("keep", false, "Leave the last proxy and its replicas running until interrupted")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
		d := newDemo(cmd.OutOrStdout(), cmd.ErrOrStderr())
		d.json, d.keep = *asJSON, *keep
		return d.run(ctx)
	}
	return cmd
}

// The demo's traffic: forty agents of six kinds, each with about 4,600 tokens of
// tools and system prompt, work side by side in conversations of three to six
// turns. They grow to 7,000 tokens and more, of which half is their own, so the
// replicas together can hold what all of them said, but none can hold it alone.
var demoTraffic = workload.Agents{
	Users: 40, Sessions: 40, Kinds: 6,
	ToolCount: 20, ToolTokens: 100, SystemTokens: 1500,
	MinTurns: 3, MaxTurns: 6, AddedTokens: 600, AnswerTokens: 30,
	Think: 300 * time.Millisecond, Ramp: 4 * time.Second,
	LongEvery: 12, LongTokens: 16_000,
}

const (
	demoReplicas = 4
	demoSeed     = 1
	// demoLimit is how long new requests are begun under each policy, so that
	// the comparison ends within a minute on a busy machine too.
	demoLimit = 15 * time.Second
)

// demoProfile is a 32B model on two H100, with the cache cut to 80,000 tokens to
// fit traffic that lasts a few seconds.
func demoProfile() engine.Profile {
	p := engine.H100x32B
	p.Blocks = 5000
	return p
}

// demoPolicies are compared in this order.
var demoPolicies = []string{"round_robin", "least_conn", "cache_aware"}

// run compares the policies and prints the result.
func (d *demo) run(ctx context.Context) error {
	defer d.stop()
	d.announce()
	summaries := []load.Summary{}
	for _, policy := range d.policies {
		summary, err := d.measure(ctx, policy)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return fmt.Errorf("measuring %s: %w", policy, err)
		}
		summaries = append(summaries, summary)
	}
	if err := d.print(summaries); err != nil {
		return fmt.Errorf("printing results: %w", err)
	}
	if d.keep {
		d.invite()
		<-ctx.Done()
	}
	return nil
}

func (d *demo) print(summaries []load.Summary) error {
	if !d.json {
		return printTable(d.out, summaries)
	}
	encoder := json.NewEncoder(d.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(summaries)
}
