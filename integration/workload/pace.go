package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// Pace is how the rate of arrivals changes over time. The zero value is steady.
type Pace struct {
	// factor on the rate at a time, and the largest that it can be.
	factor func(at time.Duration) float64
	most   float64
}

// Bursts raise the rate to factor times what it is in between, every so often for
// so long. The rate that is given to the generator is the mean.
func Bursts(every, length time.Duration, factor float64) Pace {
	share := float64(length) / float64(every)
	base := 1 / (1 + share*(factor-1))
	return Pace{most: factor * base, factor: func(at time.Duration) float64 {
		if at%every >= every-length {
			return factor * base
		}
		return base
	}}
}

// Diurnal follows a day: from least, a share of the most, at its beginning and end
// to the most in its middle, along a sine. The rate that is given is the most.
func Diurnal(day time.Duration, least float64) Pace {
	return Pace{most: 1, factor: func(at time.Duration) float64 {
		return least + (1-least)*(1-math.Cos(2*math.Pi*float64(at)/float64(day)))/2
	}}
}

// Jump is a share of the rate before a time and after another one, and all of it
// in between. The rate that is given is the one in between.
func Jump(from, until time.Duration, before float64) Pace {
	return Pace{most: 1, factor: func(at time.Duration) float64 {
		if at < from || at >= until {
			return before
		}
		return 1
	}}
}

// arrivals draws the times of a Poisson process until an end.
func (p Pace) arrivals(rng *rand.Rand, rate float64, end time.Duration, take func(at time.Duration)) {
	if p.factor == nil {
		p = Pace{most: 1, factor: func(time.Duration) float64 { return 1 }}
	}
	if rate <= 0 {
		return
	}
	longest := 2 * end.Seconds() // no sum of times overflows
	gap := func() time.Duration {
		return time.Duration(min(rng.ExpFloat64()/(rate*p.most), longest) * float64(time.Second))
	}
	for at := gap(); at < end; at += gap() {
		// Of the arrivals at the highest rate, a share is left at lower ones.
		if p.factor(at) >= p.most || rng.Float64()*p.most < p.factor(at) {
			take(at)
		}
	}
}
