package selection

// Speed says how long a replica computes. All values are in seconds.
type Speed struct {
	// Fixed is the time a prefill takes however short it is.
	Fixed float64
	// PerToken is the prefill time of one uncached token.
	PerToken float64
	// PerTokenContext is the prefill time that one uncached token costs per
	// token of context it attends to.
	PerTokenContext float64
	// Step is the time of one decode step of an otherwise idle replica.
	Step float64
	// PerSequence is what each decoding sequence adds to a decode step.
	PerSequence float64
	// PerContextToken is what each token of context, over all decoding
	// sequences, adds to a decode step.
	PerContextToken float64
}

// DefaultSpeed is roughly an 8B model on one H100. A fleet where it is wrong
// by a common factor is still balanced well, since costs are compared with
// each other.
var DefaultSpeed = Speed{
	Fixed:           4e-3,
	PerToken:        25e-6,
	PerTokenContext: 1.1e-9,
	Step:            6e-3,
	PerSequence:     30e-6,
	PerContextToken: 50e-9,
}

// prefill is the time to compute uncached tokens behind cached ones, in
// seconds. An uncached token attends to all cached ones and, on average, to
// half of the uncached ones.
func (s *Speed) prefill(cached, uncached float64) float64 {
	if uncached <= 0 {
		return s.Fixed
	}
	return s.Fixed + uncached*(s.PerToken+s.PerTokenContext*(cached+uncached/2))
}

// interToken is the time between two tokens of one answer while sequences
// are decoding over context tokens in all, in seconds.
func (s *Speed) interToken(sequences int, context float64) float64 {
	return s.Step + s.PerSequence*float64(sequences) + s.PerContextToken*context
}
