package selection

// foreign is work on a replica that did not come through here, such as that of
// other routers, as far as its last report tells.
type foreign struct {
	running, waiting float64 // requests beyond our own
}

// report compares what a replica says it has with the number of requests that
// we gave it, and returns how many it has in all.
func (l *foreign) report(report *Report, own int) (all float64, ok bool) {
	if !Known(report.Running) && !Known(report.Waiting) {
		return 0, false
	}
	running, waiting := known(report.Running), known(report.Waiting)
	all = running + waiting
	*l = foreign{}
	if excess := all - float64(own); excess > 0 {
		l.running, l.waiting = excess*running/all, excess*waiting/all
	}
	return all, true
}

// mostRequests is how many a replica is taken to have at most, so that a counter
// that has run below zero, shown as a huge number, keeps every price finite.
const mostRequests = 1e6

// known is the quantity, 0 if it was not told.
func known(quantity float64) float64 {
	if !Known(quantity) {
		return 0
	}
	return min(quantity, mostRequests)
}
