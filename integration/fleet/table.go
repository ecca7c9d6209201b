package fleet

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints a line for every run, then the summary.
func WriteTable(to io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "workload\tload\tseed\tpolicy\trequests\tTTFT mean\tp50\tp90\tp99\tend-to-end\thit rate\timbalance\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.2f\t%d\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\t%.1f%%\t%.2f\t\n",
			r.Workload, r.Load, r.Seed, r.Policy, r.Requests,
			r.TTFTMean, r.TTFTP50, r.TTFTP90, r.TTFTP99, r.E2EMean, 100*r.HitRate, r.Imbalance)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "ratio to the best of each cell: geometric mean, worst\t")
	fmt.Fprintln(w, "policy\tmean TTFT\t\tp99 TTFT\t\tend-to-end\t\t")
	for _, s := range Summarize(rows) {
		fmt.Fprintf(w, "%s\t%.3f\t%.2f\t%.3f\t%.2f\t%.3f\t%.2f\t\n",
			s.Policy, s.TTFT.Mean, s.TTFT.Worst, s.P99.Mean, s.P99.Worst, s.E2E.Mean, s.E2E.Worst)
	}
	return w.Flush()
}
