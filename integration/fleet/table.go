package fleet

import (
	"fmt"
	"io"
	"text/tabwriter"
)

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

// WriteSummary prints how every other policy compares with cache_aware, then how
// every policy compares with the best of each cell, and cache_aware with the best
// of the others.
func WriteSummary(to io.Writer, rows []Row) error {
	if list := AgainstOwn(rows); len(list) > 0 && list[0].TTFT.n > 0 {
		best := func(r Ratio) (float64, string) { return r.Best, r.BestAt }
		if err := writeRatios(to, "ratio to cache_aware", "best", best, list); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	list := Summarize(rows)
	if own := Versus(rows); own.TTFT.n > 0 {
		own.Policy += " to the best other"
		list = append(list, own)
	}
	worst := func(r Ratio) (float64, string) { return r.Worst, r.WorstAt }
	return writeRatios(to, "ratio to the best of each cell", "worst", worst, list)
}

// writeRatios prints a line for every summary: means, and the extreme of the cells.
func writeRatios(to io.Writer, title, extreme string, of func(Ratio) (float64, string), list []Summary) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\t", title)
	for _, m := range measures {
		fmt.Fprintf(w, "%s\t%s\t\t", m.name, extreme)
	}
	fmt.Fprintln(w)
	for _, s := range list {
		fmt.Fprintf(w, "%s\t", s.Policy)
		for _, m := range measures {
			ratio := *m.into(&s)
			value, at := of(ratio)
			fmt.Fprintf(w, "%.3f\t%.2f\t%s\t", ratio.Mean, value, at)
		}
		fmt.Fprintln(w)
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
			if isPolicy(r) && !isOwn(r) && (best.Policy == "" || m.of(r) < m.of(best)) {
				best = r
			}
		}
		fmt.Fprintf(to, "%s\t%s\t%s\t%s\t", figure(own, "%.3f", m.of(own)), figure(best, "%.3f", m.of(best)), best.Policy,
			figure(best, "%.2f", m.of(own)/m.of(best)))
	}
	fmt.Fprintf(to, "%s\t%s\t\n", figure(own, "%.1f%%", 100*own.HitRate), figure(pooled, "%.1f%%", 100*pooled.HitRate))
}

// figure formats a number of a row, or a dash when there is no such row.
func figure(of Row, format string, value float64) string {
	if of.Policy == "" {
		return "-"
	}
	return fmt.Sprintf(format, value)
}
