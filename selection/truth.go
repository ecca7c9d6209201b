package selection

// Truth is what a replica really holds and has to do. No router knows it.
type Truth struct {
	Matched int     // prompt tokens that it will find in its cache
	Wait    float64 // seconds until it could begin with the prefill
}

// Reveal makes the fleet estimate by the truth instead of what it believes, so
// that a simulation can show what better knowledge would be worth. The function
// is called under the fleet's lock, for each candidate of each request. Reveal
// must come before the first request.
func (f *Fleet) Reveal(truth func(replica string) Truth) { f.truth = truth }

// reveal puts the truth, if it was revealed, in the place of beliefs.
func (f *Fleet) reveal(e *Estimate) {
	if f.truth == nil {
		return
	}
	t := f.truth(e.Replica)
	matched := uint32(t.Matched)
	e.Held, e.Wait = Match{Sure: matched, Pending: matched, Maybe: matched, Ghost: matched}, t.Wait
}
