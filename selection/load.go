package selection

import "time"

const (
	// loadHalfLife is how fast the shares of foreign work are forgotten.
	loadHalfLife = 15 * time.Second
	// loadPrior is how many requests of our own are taken to have been seen
	// before any report.
	loadPrior = 4
)

// foreign is work on a replica that did not come through here, such as that of
// other routers, as far as its reports tell.
type foreign struct {
	known    bool
	requests float64 // running or waiting, beyond our own, at the last report
	waiting  float64 // of these, not yet running
	own, all decayed // requests seen at reports
}

// report compares what a replica says it has with what we gave it.
func (l *foreign) report(now time.Time, report *Report, own int) {
	if !Known(report.Running) && !Known(report.Waiting) {
		return
	}
	running, waiting := known(report.Running), known(report.Waiting)
	all := running + waiting
	l.known = true
	l.requests = max(0, all-float64(own))
	l.waiting = 0
	if all > 0 {
		l.waiting = l.requests * waiting / all
	}
	l.own.add(float64(own), now, loadHalfLife)
	l.all.add(max(all, float64(own)), now, loadHalfLife)
}

// ratio is how many times our own work a replica has in all, lately.
func (l *foreign) ratio(now time.Time) float64 {
	if !l.known {
		return 1
	}
	return (l.all.get(now, loadHalfLife) + loadPrior) / (l.own.get(now, loadHalfLife) + loadPrior)
}

// known is the quantity, 0 if it was not told.
func known(quantity float64) float64 {
	if !Known(quantity) {
		return 0
	}
	return quantity
}
