package fleet

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints a line for every run, then the summary.
func WriteTable(to io.Writer, rows []Row) error {
	if err := WriteRows(to, rows); err != nil {
		return err
	}
	fmt.Fprintln(to)
	return WriteSummary(to, rows)
}

// WriteRows prints a line for every run.
func WriteRows(to io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "workload\tload\tseed\tpolicy\trequests\tTTFT mean\tp50\tp90\tp99\tend-to-end\thit rate\timbalance\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.2f\t%d\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\t%.1f%%\t%.2f\t\n",
			r.Workload, r.Load, r.Seed, r.Policy, r.Requests,
			r.TTFTMean, r.TTFTP50, r.TTFTP90, r.TTFTP99, r.E2EMean, 100*r.HitRate, r.Imbalance)
	}
	return w.Flush()
}

// WriteSummary prints how every policy compares with the best of each cell, and
// cache_aware with the best of the others.
func WriteSummary(to io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ratio to the best of each cell\tmean TTFT\tworst\t\tp99 TTFT\tworst\t\tend to end\tworst\t\t")
	line := func(name string, s Summary) {
		fmt.Fprintf(w, "%s\t%.3f\t%.2f\t%s\t%.3f\t%.2f\t%s\t%.3f\t%.2f\t%s\t\n", name,
			s.TTFT.Mean, s.TTFT.Worst, s.TTFT.At, s.P99.Mean, s.P99.Worst, s.P99.At, s.E2E.Mean, s.E2E.Worst, s.E2E.At)
	}
	list := Summarize(rows)
	for _, s := range list {
		line(s.Policy, s)
	}
	if own := Versus(rows); own.TTFT.n > 0 {
		line(OwnPolicy+" to the best other", own)
	}
	return w.Flush()
}

// WriteCells prints a line for every workload at every load, all seeds together:
// what cache_aware did, and the best of the others.
func WriteCells(to io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "workload\tload\t")
	for _, m := range measures {
		fmt.Fprintf(w, "%s\tbest other\t\tratio\t", m.name)
	}
	fmt.Fprintln(w, "hit rate\tbound\t")
	rows = Merge(rows)
	for begin, end := 0, 0; begin < len(rows); begin = end {
		for end = begin; end < len(rows) && rows[end].cell() == rows[begin].cell(); end++ {
		}
		writeCell(w, rows[begin:end])
	}
	return w.Flush()
}

// writeCell prints a line of the rows of one cell.
func writeCell(to io.Writer, rows []Row) {
	fmt.Fprintf(to, "%s\t%.2f\t", rows[0].Workload, rows[0].Load)
	var own, pooled Row
	for _, r := range rows {
		switch r.Policy {
		case OwnPolicy:
			own = r
		case PooledLRU:
			pooled = r
		}
	}
	for _, m := range measures {
		var best Row
		for _, r := range rows {
			if r.Policy != OwnPolicy && !IsBound(r.Policy) && (best.Policy == "" || m.of(r) < m.of(best)) {
				best = r
			}
		}
		fmt.Fprintf(to, "%.3f\t%.3f\t%s\t%.2f\t", m.of(own), m.of(best), best.Policy, m.of(own)/m.of(best))
	}
	fmt.Fprintf(to, "%.1f%%\t%.1f%%\t\n", 100*own.HitRate, 100*pooled.HitRate)
}
