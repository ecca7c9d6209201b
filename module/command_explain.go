package module

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

// ExplainCommand makes the command that asks a running Caddy where a request
// would go and why.
func ExplainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [--file <path>] [--path <path>] [--state <name>] [--tenant <text>] [--json] [--address <interface>] [--config <path> [--adapter <name>]]",
		Short: "Show where a running Caddy would send an LLM request, and why",
		Long: `
Shows what the cache_aware policies of a running Caddy understand of a request,
and what they expect of it on each replica they know. Nothing is sent to a
replica, and nothing is counted. The body is read from --file, or from standard
input:

  $ caddy cache-aware explain --file request.json

It asks Caddy's admin API, which must be enabled. Replicas that Caddy would
leave out at present, as when they fail their health checks, are shown too, and
headers such as those of session_header are not looked at.`,
		Args: cobra.NoArgs,
	}
	client := newAdminClient(cmd)
	file := cmd.Flags().StringP("file", "f", "-", "File with the request's body; - is standard input")
	path := cmd.Flags().String("path", defaultExplainPath, "Path that the request goes to")
	state := cmd.Flags().String("state", defaultName, "The policies' name")
	tenant := cmd.Flags().String("tenant", "", "What the placeholder of isolate_by would be")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		body, err := readBody(cmd.InOrStdin(), *file)
		if err != nil {
			return fmt.Errorf("reading request body: %w", err)
		}
		query := url.Values{"path": {*path}, "state": {*state}, "tenant": {*tenant}}
		var answer Explanation
		out := cmd.OutOrStdout()
		return client.show(out, http.MethodPost, explainPath+"?"+query.Encode(), bytes.NewReader(body), &answer, func() error {
			return printExplanation(out, &answer)
		})
	}
	return cmd
}

// readBody reads as much as the admin API would.
func readBody(in io.Reader, path string) ([]byte, error) {
	if path != "-" {
		file, err := os.Open(path) //nolint:gosec // the user's own choice
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	return io.ReadAll(io.LimitReader(in, defaultMaxPrompt+1))
}

func printExplanation(out io.Writer, e *Explanation) error {
	fmt.Fprintln(out, e.Understood.sentence())
	if e.Owner != "" {
		fmt.Fprintf(out, "goes to %s, which keeps the response or conversation that it names\n", e.Owner)
	}
	if len(e.Candidates) == 0 {
		_, err := fmt.Fprintln(out, "no replica is known yet")
		return err
	}
	table := newTable(out, "REPLICA", "MATCHED", "UNCACHED", "WAIT", "PREFILL", "FACTOR", "DECODE", "FAILING", "COST")
	for _, c := range e.Candidates {
		row(table, c.Replica, humanize.Comma(int64(c.Matched)), humanize.Comma(int64(c.Uncached)), duration(c.Wait),
			duration(c.Prefill), fmt.Sprintf("%.2f", c.Factor), duration(c.Decode), duration(c.Failing), duration(c.Cost))
	}
	return table.Flush()
}

// sentence says what was understood. Names come from the request, and are
// quoted for the terminal's sake.
func (u *Understood) sentence() string {
	if u.Unread != "" && u.Hints > 0 {
		return fmt.Sprintf("no prompt could be read (%s), but the request names a session", u.Unread)
	}
	if u.Unread != "" {
		return fmt.Sprintf("no prompt could be read (%s), so only load counts", u.Unread)
	}
	parts := []string{fmt.Sprintf("%s request: %s in %s", u.API,
		count(u.PromptTokens, "prompt token", "prompt tokens"), count(u.Blocks, "block", "blocks"))}
	if u.Model != "" {
		parts = append(parts, fmt.Sprintf("model %q", u.Model))
	}
	if u.Adapter != "" {
		parts = append(parts, fmt.Sprintf("adapter %q", u.Adapter))
	}
	if u.MaxTokens > 0 {
		parts = append(parts, "at most "+count(u.MaxTokens, "token", "tokens")+" of answer")
	}
	if u.Stream {
		parts = append(parts, "streamed")
	}
	if u.Truncated {
		parts = append(parts, "only the beginning was read")
	}
	return strings.Join(parts, ", ")
}
