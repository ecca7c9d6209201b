// Package report writes what a simulation showed as one HTML page that needs
// nothing from anywhere else.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// Report is what a page shows.
type Report struct {
	// Facts describe what was simulated, as pairs of name and value.
	Facts [][2]string
	// Command is what makes the same page again.
	Command string
	// Outcomes are those of the policies, in the order in which they are shown.
	Outcomes []fleet.Outcome
	// Warmup is how long requests were not counted, Until when the run ended.
	Warmup, Until time.Duration
}

//go:embed report.html
var source string

var page = template.Must(template.New("report").Parse(source))

// Write writes the page.
func (r Report) Write(to io.Writer) error {
	if err := page.Execute(to, r.view()); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// view is what the template needs.
type view struct {
	Facts   [][2]string
	Command string
	Columns []string
	Rows    []row
	Legend  []key
	TTFT    plot
	HitRate plot
	Loads   []plot
	OwnAxes bool // some of Loads have an axis of their own
	Many    bool // too many replicas for a line each
	Bounds  bool // there are some
}

type row struct {
	Policy string
	Bound  bool
	Cells  []cell
}

type cell struct {
	Text  string
	Ratio string // to the best of the column
	Best  bool
}

// key is a policy in the legend: its name and how its lines look.
type key struct {
	Policy string
	Look   string
	Dash   string
}

func (r Report) view() *view {
	v := &view{Facts: r.Facts, Command: r.Command, Columns: columnNames()}
	for i, o := range r.Outcomes {
		v.Rows = append(v.Rows, row{Policy: o.Policy, Bound: fleet.IsBound(o.Policy)})
		v.Legend = append(v.Legend, key{o.Policy, look(i, o), dash(i)})
		v.Bounds = v.Bounds || fleet.IsBound(o.Policy)
	}
	for _, c := range columns {
		c.fill(v.Rows, r.Outcomes)
	}
	v.TTFT, v.HitRate = r.ttft(), r.hitRate()
	v.Loads, v.OwnAxes = r.loads()
	for _, o := range r.Outcomes {
		v.Many = v.Many || len(o.Series.InFlight) > mostLines
	}
	return v
}

// colors is how many colors the page's style sheet has.
const colors = 8

// look is the class that the lines of an outcome have.
func look(i int, o fleet.Outcome) string {
	switch {
	case fleet.IsBound(o.Policy):
		return "bound"
	case o.Policy == fleet.OwnPolicy:
		return color(i) + " own"
	default:
		return color(i)
	}
}

func color(i int) string { return fmt.Sprintf("k%d", i%colors) }

// dash tells lines of the same color apart, and all of them without color.
func dash(i int) string {
	return [...]string{"", "8 3", "3 2", "11 3 3 3", "", "6 2", "4 2", "12 4"}[(i+i/colors)%8]
}

// column is a figure of the table.
type column struct {
	name   string
	of     func(fleet.Row) float64
	format func(float64) string
	most   bool // more is better
	plain  bool // neither is
}

var columns = []column{
	{name: "requests", of: func(r fleet.Row) float64 { return float64(r.Requests) }, format: plain, plain: true},
	{name: "TTFT mean", of: func(r fleet.Row) float64 { return r.TTFTMean }, format: seconds},
	{name: "p50", of: func(r fleet.Row) float64 { return r.TTFTP50 }, format: seconds},
	{name: "p90", of: func(r fleet.Row) float64 { return r.TTFTP90 }, format: seconds},
	{name: "p99", of: func(r fleet.Row) float64 { return r.TTFTP99 }, format: seconds},
	{name: "end to end", of: func(r fleet.Row) float64 { return r.E2EMean }, format: seconds},
	{name: "hit rate", of: func(r fleet.Row) float64 { return r.HitRate }, format: percent, most: true},
	{name: "imbalance", of: func(r fleet.Row) float64 { return r.Imbalance }, format: func(v float64) string { return fmt.Sprintf("%.2f", v) }},
}

func columnNames() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// fill adds the column to the rows.
func (c column) fill(rows []row, outcomes []fleet.Outcome) {
	best := math.Inf(1)
	if c.most {
		best = 0
	}
	for _, o := range outcomes {
		if fleet.IsBound(o.Policy) {
			continue
		}
		if v := c.of(o.Row); c.most {
			best = max(best, v)
		} else {
			best = min(best, v)
		}
	}
	for i, o := range outcomes {
		value := c.of(o.Row)
		cell := cell{Text: c.format(value)}
		switch {
		case c.plain, fleet.IsBound(o.Policy):
		case value == best:
			cell.Best = true
		case !c.most && best > 0:
			cell.Ratio = ratio(value / best)
		}
		rows[i].Cells = append(rows[i].Cells, cell)
	}
}

func ratio(v float64) string {
	if v >= 9.95 {
		return fmt.Sprintf("%.0f×", v)
	}
	return fmt.Sprintf("%.2f×", v)
}

// steps are the middles of a series' steps, in seconds.
func steps(s *fleet.Series) []float64 {
	xs := make([]float64, len(s.PromptTokens))
	for i := range xs {
		xs[i] = (float64(i) + 0.5) * s.Step.Seconds()
	}
	return xs
}

// sorted are the times to first token in seconds, shortest first.
func sorted(o fleet.Outcome) []float64 {
	list := make([]float64, len(o.Result.TTFT))
	for i, d := range o.Result.TTFT {
		list[i] = d.Seconds()
	}
	slices.Sort(list)
	return list
}
