package selection

const (
	// trustMemory is after how many answers older ones count for 1/e.
	trustMemory = 16
	// lostTrust is the share of all tokens that is expected after the replica
	// could not be reached: it may have been restarted, or only have been busy.
	lostTrust = 0.1
	// checkable is how many tokens an answer must speak of to tell something:
	// fewer can be lost to block sizes and templates.
	checkable = 256
)

// trust is the share of promised tokens that answers find cached, by how sure
// the promise is.
type trust struct {
	sure  float64 // well within the capacity
	edge  float64 // near the capacity
	ghost float64 // beyond it, in case it is larger than believed
}

// usualTrust is where learning begins. What is expected of ghosts brings prompts
// back to where they were, so that answers can tell.
var usualTrust = trust{sure: 1, edge: 0.5, ghost: 0.25}

// learn takes in what was found of a promise.
func (t *trust) learn(sure, pending, maybe, ghost, found float64) {
	learnShare(&t.sure, 0, sure, found)
	learnShare(&t.edge, pending, maybe, found)
	learnShare(&t.ghost, maybe, ghost, found)
}

// learnShare moves share by what was found between two lengths. Shorter
// stretches than a checkable one tell less.
func learnShare(share *float64, from, to, found float64) {
	if to <= from {
		return
	}
	weight := min(1, (to-from)/checkable) / trustMemory
	*share += (min(max((found-from)/(to-from), 0), 1) - *share) * weight
}

// expect is how many leading tokens of a prompt a request can expect to find.
func (r *replica) expect(m Match) int {
	t := r.trust
	if r.doubted {
		t.edge, t.ghost = lostTrust, 0
	}
	return int(t.sure*float64(m.Pending) + t.edge*float64(m.Maybe-m.Pending) + t.ghost*float64(m.Ghost-m.Maybe))
}

// learnResidency compares what was promised with how many tokens were found.
// Promises made before the replica was last doubted or emptied say nothing.
func (f *Fleet) learnResidency(b *Booking, found float64) {
	r := b.replica
	r.counters.checked = true
	m := &b.Estimate.Held
	switch {
	case b.generation != r.generation || b.claim == nil:
	case f.settleDoubt(r, float64(m.Pending), float64(m.Maybe), found):
	case !r.sequences.known() && lost(b.claim.promise.at(r.belief.proved), found):
		learnShare(&r.trust.sure, 0, float64(m.Sure), found)
		f.doubt(r)
	default:
		r.trust.learn(float64(m.Sure), float64(m.Pending), float64(m.Maybe), float64(m.Ghost), found)
		f.learnCapacity(r, b.claim.promise.at, float64(b.prompt), found)
	}
}

// lost tells whether tokens are missing that the replica would hold if its
// capacity were no larger than what it has proved to be.
func lost(promised, found float64) bool {
	return promised >= checkable && found < lostTrust*promised
}

// doubt says that the replica may have lost its cache. What it was given
// before counts for little until a hit is confirmed. The caller holds the lock.
func (f *Fleet) doubt(r *replica) {
	r.doubted = true
	r.generation++
	f.residency.Doubt(r.slot)
	r.sequences.doubt()
}

// forget says that the replica has lost its cache. The caller holds the lock.
func (f *Fleet) forget(r *replica) {
	r.doubted = false
	r.generation++
	f.residency.Forget(r.slot)
	r.sequences.forget()
}

// settleDoubt compares how much of prompts a doubted replica surely has, how
// much it may have, and what was found. It reports whether that ended a doubt.
func (f *Fleet) settleDoubt(r *replica, has, may, found float64) bool {
	if !r.doubted || may-has < checkable {
		return false
	}
	r.doubted = false
	r.generation++
	if found >= (has+may)/2 {
		f.residency.Believe(r.slot)
		r.sequences.believe()
	} else {
		f.residency.Disbelieve(r.slot)
		r.sequences.disbelieve()
	}
	return true
}
