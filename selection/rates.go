package selection

import (
	"math"
	"time"
)

const (
	// ratesHalfLife is over how long rates are averaged.
	ratesHalfLife = 20 * time.Second
	// ratesStep is how much time passes between two looks at the clock: rates
	// need no more, and every look costs an exponential.
	ratesStep = ratesHalfLife / 200
)

// rates are sums over the recent past. They fade by a half every ratesHalfLife.
type rates struct {
	at       time.Time
	bookings float64
	prefill  float64 // seconds booked
	own, all float64 // requests of ours and of all, summed over reports
}

// fade brings the sums up to now.
func (r *rates) fade(now time.Time) {
	age := now.Sub(r.at)
	if age < ratesStep {
		return
	}
	r.at = now
	keep := math.Exp2(-float64(age) / float64(ratesHalfLife))
	r.bookings *= keep
	r.prefill *= keep
	r.own *= keep
	r.all *= keep
}

func (r *rates) book(now time.Time, prefill float64) {
	r.fade(now)
	r.bookings++
	r.prefill += prefill
}

// report takes in how many requests a replica had, of ours and in all.
func (r *rates) report(now time.Time, own, all float64) {
	r.fade(now)
	r.own += own
	r.all += max(own, all)
}

// foreignPrior is how many requests of our own are taken to have been seen
// before any report.
const foreignPrior = 4

// foreign is how many times our own work a replica has in all.
func (r *rates) foreign() float64 {
	return (r.all + foreignPrior) / (r.own + foreignPrior)
}

// arrivals is the rate of bookings per second.
func (r *rates) arrivals() float64 { return r.bookings / meanLife(ratesHalfLife) }

// utilisation is the share of time spent on booked prefills, 1 when more was
// booked than the replica can do.
func (r *rates) utilisation() float64 { return min(1, r.prefill/meanLife(ratesHalfLife)) }

// survey is what the candidates of one decision are like on average.
type survey struct {
	arrivals    float64 // requests per second and replica, foreign ones included
	utilisation float64 // share of time spent on prefill
	prefill     float64 // seconds per request
	turnover    float64 // of caches that are contended for, per second
}

func surveyOf(candidates []*replica, now time.Time) (s survey) {
	var bookings, prefill float64
	for _, r := range candidates {
		r.rates.fade(now)
		foreign := r.rates.foreign()
		s.arrivals += r.rates.arrivals() * foreign
		s.utilisation += min(1, r.rates.utilisation()*foreign)
		bookings += r.rates.bookings
		prefill += r.rates.prefill
	}
	n := float64(len(candidates))
	s.arrivals /= n
	s.utilisation /= n
	if bookings > 0 {
		s.prefill = prefill / bookings
	}
	return s
}
