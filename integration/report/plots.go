package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// plot is a drawing with two axes, in the units of its view box.
type plot struct {
	Title, Note              string
	Width, Height            float64
	Left, Right, Top, Bottom float64 // of the drawing area
	XTicks, YTicks           []tick
	XName, YName             string
	WarmFrom, Warm           float64 // begin and width of the warm-up, if Warm is not 0
	Curves                   []curve
}

// curve is one line or area of a plot.
type curve struct {
	Name string
	Path string
	Look string // classes
	Dash string
}

func frame(width, height float64) plot {
	return plot{
		Width: width, Height: height, Left: 48, Right: width - 26, Top: 12, Bottom: height - 42,
	}
}

// Places that the template needs.
func (p plot) PlotHeight() float64 { return p.Bottom - p.Top }
func (p plot) Middle() float64     { return (p.Left + p.Right) / 2 }
func (p plot) TickX() float64      { return p.Left - 8 }
func (p plot) LabelY() float64     { return p.Bottom + 18 }
func (p plot) TitleY() float64     { return p.Height - 6 }

func (p *plot) x(low, high float64, log bool) axis {
	return axis{low: low, high: high, from: p.Left, to: p.Right, log: log}
}

func (p *plot) y(low, high float64) axis {
	return axis{low: low, high: high, from: p.Bottom, to: p.Top}
}

// points is the number of points of a distribution's line.
const points = 240

// ttft is the distribution of times to first token.
func (r Report) ttft() plot {
	p := frame(860, 380)
	p.Title, p.XName, p.YName = "Time to first token", "time to first token", "share of requests"
	low, high := math.Inf(1), 0.0
	var all [][]float64
	for _, o := range r.Outcomes {
		times := sorted(o)
		all = append(all, times)
		if n := len(times); n > 0 {
			low, high = min(low, times[n/100]), max(high, times[min(n-1, n*999/1000)])
		}
	}
	if high == 0 {
		low, high = 0.01, 1
	}
	low, high = logBounds(low, high)
	x, y := p.x(low, high, true), p.y(0, 1)
	p.XTicks, p.YTicks = x.ticks(0, mark), y.ticks(5, percent)
	for i, times := range all {
		if len(times) == 0 {
			continue
		}
		var xs, ys []float64
		for k := range points + 1 {
			xs = append(xs, times[k*(len(times)-1)/points])
			ys = append(ys, float64(k)/points)
		}
		p.add(r.Outcomes[i], i, line(x, y, xs, ys, nil))
	}
	return p
}

func (p *plot) add(o fleet.Outcome, i int, path string) {
	p.Curves = append(p.Curves, curve{Name: o.Policy, Path: path, Look: look(i, o), Dash: dash(i)})
}

// hitRate is the share of cached prompt tokens over time.
func (r Report) hitRate() plot {
	p := frame(860, 320)
	p.Title, p.XName, p.YName = "Hit rate", "time", "cached share of prompt tokens"
	x, y := p.x(0, r.Until.Seconds(), false), p.y(0, 1)
	p.YTicks = y.ticks(5, percent)
	p.timeAxis(r, x)
	for i, o := range r.Outcomes {
		rates, known := o.Series.HitRates()
		p.add(o, i, line(x, y, steps(o.Series), rates, known))
	}
	return p
}

// timeAxis draws round times and the warm-up.
func (p *plot) timeAxis(r Report, x axis) {
	step := roundTime(r.Until.Seconds() / (p.Width / 110))
	p.XTicks = nil
	for v := 0.0; v <= r.Until.Seconds(); v += step {
		p.XTicks = append(p.XTicks, tick{x.at(v), minutes(v)})
	}
	p.WarmFrom, p.Warm = p.Left, x.at(r.Warmup.Seconds())-p.Left
}

// roundTime is the least round number of seconds that is not under v.
func roundTime(v float64) float64 {
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200} {
		if step >= v {
			return step
		}
	}
	return 86400 * math.Ceil(v/86400)
}

// mostLines is up to how many replicas each of them has a line.
const mostLines = 16

// loads are the requests in flight on each replica, a plot for each policy. They
// share an axis but for those that would flatten the others.
func (r Report) loads() (plots []plot, own bool) {
	var peaks []float64
	for _, o := range r.Outcomes {
		if len(o.Series.InFlight) > 0 {
			peaks = append(peaks, peakOf(o))
		}
	}
	shared := sharedPeak(peaks)
	for i, o := range r.Outcomes {
		if len(o.Series.InFlight) == 0 {
			continue // a bound, which has no replicas
		}
		top := shared
		if peak := peakOf(o); peak > shared {
			top, own = peak, true
		}
		p := r.load(i, o, top)
		if top != shared {
			p.Note = "axis of its own"
		}
		plots = append(plots, p)
	}
	return plots, own
}

// peakOf is the most that a replica had in flight, at least 1.
func peakOf(o fleet.Outcome) float64 {
	peak := 1.0
	for _, replica := range o.Series.InFlight {
		peak = max(peak, slices.Max(replica))
	}
	return peak
}

// sharedPeak is the highest peak that is at most three times the median.
func sharedPeak(peaks []float64) float64 {
	if len(peaks) == 0 {
		return 1
	}
	ordered := slices.Sorted(slices.Values(peaks))
	shared := ordered[0]
	for _, v := range ordered {
		if v <= 3*ordered[(len(ordered)-1)/2] {
			shared = v
		}
	}
	return shared
}

func (r Report) load(i int, o fleet.Outcome, top float64) plot {
	p := frame(330, 200)
	p.Title, p.XName, p.YName = o.Policy, "time", "requests in flight"
	x, y := p.x(0, r.Until.Seconds(), false), p.y(0, top)
	p.YTicks = y.ticks(3, plain)
	p.timeAxis(r, x)
	xs := steps(o.Series)
	low, mean, high := spread(o.Series)
	p.Curves = append(p.Curves, curve{
		Name: o.Policy + ": least to most of all replicas", Path: area(x, y, xs, low, high), Look: color(i) + " band",
	})
	if len(o.Series.InFlight) <= mostLines {
		for k, replica := range o.Series.InFlight {
			p.Curves = append(p.Curves, curve{
				Name: fmt.Sprintf("%s: replica %d", o.Policy, k+1), Path: line(x, y, xs, replica, nil), Look: color(i) + " replica",
			})
		}
	}
	p.Curves = append(p.Curves, curve{
		Name: o.Policy + ": mean", Path: line(x, y, xs, mean, nil), Look: color(i) + " mean",
	})
	return p
}

// spread is the least, mean and most load of all replicas, step by step.
func spread(s *fleet.Series) (low, mean, high []float64) {
	for step := range s.PromptTokens {
		least, sum, most := math.Inf(1), 0.0, 0.0
		for _, replica := range s.InFlight {
			least, sum, most = min(least, replica[step]), sum+replica[step], max(most, replica[step])
		}
		low, mean, high = append(low, least), append(mean, sum/float64(len(s.InFlight))), append(high, most)
	}
	return low, mean, high
}
