package report

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// axis maps values to coordinates of a plot.
type axis struct {
	low, high float64 // values
	from, to  float64 // coordinates
	log       bool
}

func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log(max(v, low)), math.Log(low), math.Log(high)
	}
	if high == low {
		return a.from
	}
	share := min(1, max(0, (v-low)/(high-low)))
	return a.from + share*(a.to-a.from)
}

// tick is a labelled line across a plot.
type tick struct {
	At    float64
	Label string
}

// ticks are about so many round values on the axis.
func (a axis) ticks(about int, label func(v float64) string) []tick {
	if a.log {
		return a.logTicks(label)
	}
	var list []tick
	step := roundStep((a.high - a.low) / float64(about))
	for i := math.Ceil(a.low / step); i*step <= a.high+step/1e6; i++ {
		list = append(list, tick{a.at(i * step), label(i * step)})
	}
	return list
}

// logTicks are 1, 2 and 5 of every power of ten, or the powers alone when those
// would be too many.
func (a axis) logTicks(label func(v float64) string) []tick {
	steps := []float64{1, 2, 5}
	if a.high/a.low > 1e5 {
		steps = steps[:1]
	}
	var list []tick
	for p := math.Floor(math.Log10(a.low)); math.Pow(10, p) <= a.high; p++ {
		for _, s := range steps {
			if v := s * math.Pow(10, p); v >= a.low*0.999 && v <= a.high*1.001 {
				list = append(list, tick{a.at(v), label(v)})
			}
		}
	}
	return list
}

// roundStep is the least of 1, 2, 5, 10, 20, ... that is not under v.
func roundStep(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, s := range []float64{1, 2, 5} {
		if s*p >= v*0.999 {
			return s * p
		}
	}
	return 10 * p
}

// logBounds widens a range of positive values to ticks of a logarithmic axis.
func logBounds(low, high float64) (float64, float64) {
	low = max(low, 1e-4)
	high = max(high, low*2)
	down := math.Pow(10, math.Floor(math.Log10(low)))
	for _, s := range []float64{5, 2} {
		if s*down <= low {
			down *= s
			break
		}
	}
	return down, roundStep(high)
}

// line is the path through points; gaps are left where known is false.
func line(x, y axis, xs, ys []float64, known []bool) string {
	var b strings.Builder
	pen := "M"
	for i := range xs {
		if known != nil && !known[i] {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, x.at(xs[i]), y.at(ys[i]))
		pen = "L"
	}
	return b.String()
}

// area is the closed path between two lines.
func area(x, y axis, xs, low, high []float64) string {
	var b strings.Builder
	for i := range xs {
		fmt.Fprintf(&b, "%s%.1f %.1f", pen(i), x.at(xs[i]), y.at(high[i]))
	}
	for i := len(xs) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "L%.1f %.1f", x.at(xs[i]), y.at(low[i]))
	}
	return b.String() + "Z"
}

func pen(i int) string {
	if i == 0 {
		return "M"
	}
	return "L"
}

// seconds writes a time with three digits.
func seconds(s float64) string {
	switch {
	case s < 0.00995:
		return fmt.Sprintf("%.2f ms", 1000*s)
	case s < 0.0995:
		return fmt.Sprintf("%.1f ms", 1000*s)
	case s < 0.9995:
		return fmt.Sprintf("%.0f ms", 1000*s)
	case s < 9.995:
		return fmt.Sprintf("%.2f s", s)
	case s < 99.95:
		return fmt.Sprintf("%.1f s", s)
	default:
		return fmt.Sprintf("%.0f s", s)
	}
}

// mark writes a round time on an axis.
func mark(s float64) string {
	if s < 0.9995 {
		return fmt.Sprintf("%.3g ms", 1000*s)
	}
	return fmt.Sprintf("%.4g s", s)
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func plain(v float64) string { return fmt.Sprintf("%g", v) }

// minutes writes a time on an axis of times.
func minutes(v float64) string {
	d := time.Duration(math.Round(v)) * time.Second
	if d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return d.String()
}
