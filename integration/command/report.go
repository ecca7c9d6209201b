package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/load"
)

// announce says what is about to happen.
func (d *demo) announce() {
	fmt.Fprintf(d.progress, "%d simulated replicas (%s, %d tokens of KV cache each), %d requests in %d sessions for each policy\n",
		demoReplicas, d.profile.Name, d.profile.Capacity(), d.traffic.Requests(), len(d.traffic.Sessions))
}

// invite says how to try the proxy that is left running.
func (d *demo) invite() {
	fmt.Fprintf(d.progress, `
The proxy with %s listens at %s. Try:

  curl -i %s/v1/chat/completions -d '{"messages":[{"role":"user","content":"Hello"}],"max_tokens":20}'
  caddy cache-aware status --address %s

Ctrl-C ends it.
`, d.policies[len(d.policies)-1], d.proxy.URL, d.proxy.URL, d.admin)
}

// printTable prints a row for each policy.
func printTable(out io.Writer, summaries []load.Summary) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "policy\trequests\terrors\tTTFT mean\tp50\tp90\tp99\tend to end\thit rate\tper replica\t")
	for _, s := range summaries {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%.0f %%\t%s\t\n", s.Policy, s.Requests, s.Errors,
			milliseconds(s.TTFTMean), milliseconds(s.TTFTP50), milliseconds(s.TTFTP90), milliseconds(s.TTFTP99),
			milliseconds(s.E2EMean), 100*s.HitRate, shares(s.ReplicaShare))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, `
TTFT: time to first token. End to end: mean time to the last token. Hit rate: share of the
prompts' tokens that were in the replica's KV cache. Per replica: share of the requests.`)
	return err
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.0f ms", 1000*seconds) }

func shares(of []float64) string {
	var parts []string
	for _, share := range of {
		parts = append(parts, fmt.Sprintf("%.0f", 100*share))
	}
	return strings.Join(parts, "/") + " %"
}

// progress shows how far a policy's measurement is: in place on a terminal, else
// one line at the end.
type progress struct {
	out      io.Writer
	terminal bool
	policy   string
	total    int
	begin    time.Time
	shown    atomic.Int64 // percent
}

func newProgress(out io.Writer, policy string, total int) *progress {
	return &progress{out: out, terminal: isTerminal(out), policy: policy, total: total, begin: time.Now()}
}

// show is called from many goroutines; each percent is written once.
func (p *progress) show(done int) {
	percent := int64(100 * done / p.total)
	if shown := p.shown.Load(); p.terminal && percent > shown && p.shown.CompareAndSwap(shown, percent) {
		fmt.Fprintf(p.out, "\r%-12s %3d %%", p.policy, percent)
	}
}

func (p *progress) end(s load.Summary, err error) {
	start := ""
	if p.terminal {
		start = "\r"
	}
	fmt.Fprintf(p.out, "%s%-12s done in %.0f s, mean time to first token %s\n",
		start, p.policy, time.Since(p.begin).Seconds(), milliseconds(s.TTFTMean))
	if err != nil {
		fmt.Fprintf(p.out, "%d requests failed, the first with: %v\n", s.Errors, err)
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
