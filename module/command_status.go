package module

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/seed5db0839e/caddy-cache-aware/health"
)

// watchInterval is how often status --watch looks.
const watchInterval = 2 * time.Second

// clearScreen moves a terminal's cursor home and clears what follows.
const clearScreen = "\x1b[H\x1b[J"

// StatusCommand makes the command that shows what a running Caddy knows of
// its replicas.
func StatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [--watch] [--json] [--address <interface>] [--config <path> [--adapter <name>]]",
		Short: "Show what a running Caddy knows of LLM replicas",
		Long: `
Shows what the cache_aware policies of a running Caddy know of each replica: how
much of its KV cache is believed to be in use, the requests sent there that are
queued or past their prefill, how long another one would wait, and how busy it
is. It asks Caddy's admin API, which must be enabled.`,
		Args: cobra.NoArgs,
	}
	client := newAdminClient(cmd)
	watch := cmd.Flags().Bool("watch", false, "Show it anew every 2 seconds until interrupted")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		if !*watch {
			return client.status(cmd.OutOrStdout())
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		client.watch(ctx, cmd.OutOrStdout())
		return nil
	}
	return cmd
}

func (c adminClient) status(out io.Writer) error {
	var answer statusAnswer
	return c.show(out, http.MethodGet, statusPath, nil, &answer, func() error {
		return printStatuses(out, answer.States)
	})
}

// watch prints the status again and again. Errors are printed too, since Caddy
// may come back.
func (c adminClient) watch(ctx context.Context, out io.Writer) {
	for {
		var page strings.Builder
		if err := c.status(&page); err != nil {
			fmt.Fprintln(&page, "Error:", err)
		}
		if !*c.json {
			fmt.Fprint(out, clearScreen)
		}
		fmt.Fprint(out, page.String())
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchInterval):
		}
	}
}

func printStatuses(out io.Writer, list []Status) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no cache_aware policy is running")
		return err
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printStatus(out, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func printStatus(out io.Writer, s *Status) error {
	fmt.Fprintf(out, "%s: %s, index of %s blocks in %s of %s\n", s.Name, count(s.Policies, "policy", "policies"),
		humanize.Comma(int64(s.Index.Entries)), size(s.Index.Bytes), size(s.Index.Limit))
	if len(s.Replicas) == 0 {
		_, err := fmt.Fprintln(out, "no replica is known yet")
		return err
	}
	table := newTable(out, "REPLICA", "ENGINE", "CACHED TOKENS", "CAPACITY", "QUEUED", "RUNNING", "WAIT", "BUSY", "PRESSURE", "NOTES")
	for i := range s.Replicas {
		r := &s.Replicas[i]
		row(table, r.Replica, r.Load.engine(), humanize.Comma(int64(r.Resident)), capacity(r),
			r.Queued, r.Running, duration(1e3*r.Wait), percent(r.Utilisation), fmt.Sprintf("%.2f", r.Pressure), r.notes())
	}
	return table.Flush()
}

// capacity is a replica's capacity and where it is known from.
func capacity(r *ReplicaStatus) string {
	return strings.TrimSpace(humanize.Comma(int64(r.Capacity)) + " " + r.Source)
}

func (l *LoadStatus) engine() string {
	if l == nil || l.Engine == "" {
		return "-"
	}
	return l.Engine
}

// notes says what is unusual about a replica.
func (r *ReplicaStatus) notes() string {
	var notes []string
	if r.Failing >= 1e-3 {
		notes = append(notes, "failing, costs "+duration(1e3*r.Failing)+" more")
	}
	if r.Doubted {
		notes = append(notes, "may have lost its cache")
	}
	if foreign := r.ForeignRunning + r.ForeignWaiting; foreign >= 1 {
		notes = append(notes, count(int(foreign), "request", "requests")+" of others")
	}
	notes = append(notes, paceNotes("prefill", r.PrefillPace)...)
	notes = append(notes, paceNotes("decoding", r.DecodePace)...)
	if r.Load != nil {
		notes = append(notes, r.Load.notes()...)
	}
	return strings.Join(notes, "; ")
}

// paceNotes says so if a replica's pace is not about the usual one.
func paceNotes(work string, pace float64) []string {
	if pace <= 0 || pace > 2.0/3 && pace < 1.5 {
		return nil
	}
	return []string{fmt.Sprintf("%s takes %.1f times the usual time", work, pace)}
}

func (l *LoadStatus) notes() (notes []string) {
	report := l.report()
	if report.Sleeping {
		notes = append(notes, "sleeping")
	}
	if report.PrefixCaching == health.Off {
		notes = append(notes, "prefix caching is off")
	}
	if l.Failures > 0 {
		notes = append(notes, "does not report its load: "+l.Error)
	}
	return notes
}

// newTable begins a table with columns that are aligned with spaces.
func newTable(out io.Writer, columns ...any) *tabwriter.Writer {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row(table, columns...)
	return table
}

// row writes one row. Errors show when the table is flushed.
func row(table io.Writer, cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(table, "\t")
		}
		fmt.Fprint(table, cell)
	}
	fmt.Fprintln(table)
}

func size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) } //nolint:gosec // not negative

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// duration is a time in milliseconds with about three digits.
func duration(ms float64) string {
	switch {
	case ms >= 10_000:
		return fmt.Sprintf("%.1f s", ms/1e3)
	case ms >= 1000:
		return fmt.Sprintf("%.2f s", ms/1e3)
	case ms >= 10 || ms == 0:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f ms", ms)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}
