package selection

// Promises sum up, over requests that were answered, what was promised of their
// prompts and what was found. They only grow while a replica is known.
type Promises struct {
	Requests  uint64 `json:"requests"`
	Prompt    uint64 `json:"prompt_tokens"`    // as estimated
	Promised  uint64 `json:"promised_tokens"`  // of them, expected in the cache
	Confirmed uint64 `json:"confirmed_tokens"` // of them, found there by the answer's word
}

// tally are the promises of a replica, by whether answers said what was found.
type tally struct {
	booked             uint64 // requests in all
	checked, unchecked Promises
}

// count takes in a booking that ended in an answer.
func (t *tally) count(b *Booking, usage Usage) {
	sum := &t.unchecked
	if usage.Checked {
		sum = &t.checked
		sum.Confirmed += uint64(usage.found(b.prompt))
	}
	sum.Requests++
	sum.Prompt += uint64(b.prompt)
	sum.Promised += uint64(b.Estimate.Matched)
}
