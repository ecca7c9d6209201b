package selection

const (
	// usualTrust is the share of the tokens near a replica's capacity that a
	// request can expect to find.
	usualTrust = 0.5
	// lostTrust is the same after the replica could not be reached: it may have
	// been restarted, or only have been busy.
	lostTrust = 0.1
	// checkable is how many doubtful tokens an answer must speak of to settle
	// the doubt: less can be lost to block sizes and templates.
	checkable = 256
)

// expect is how many leading tokens of a prompt a request can expect to find.
func (r *replica) expect(m Match) int {
	return int(m.Pending) + int(r.trust()*float64(m.Maybe-m.Pending))
}

func (r *replica) trust() float64 {
	if r.doubted {
		return lostTrust
	}
	return usualTrust
}

// doubt says that the replica may have lost its cache. What it was given
// before counts for little until a hit is confirmed.
func (f *Fleet) doubt(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.doubted = true
	f.residency.Doubt(r.slot)
}

// settleDoubt compares what a doubted replica may have held of a prompt with
// what its answer says was found.
func (f *Fleet) settleDoubt(r *replica, m Match, cached int) {
	doubtful := int(m.Maybe - m.Pending)
	if !r.doubted || doubtful < checkable {
		return
	}
	r.doubted = false
	if cached >= int(m.Pending)+doubtful/2 {
		f.residency.Believe(r.slot)
	} else {
		f.residency.Disbelieve(r.slot)
	}
}
