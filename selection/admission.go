package selection

// admission is how long a sequence waits for a place in the running batch, in
// seconds, when only a share of a replica's requests runs at once and each decodes
// for decode seconds: the others come before it, and so many at a time.
func admission(share, decode float64) float64 { return decode * (1/share - 1) }

// share is the part of a replica's requests, this one included, that its slots and
// its KV cache let run at once.
func (f *Fleet) share(r *replica, request *Request, held Match) float64 {
	share := 1.0
	if limit := r.slots.limit(); limit > 0 {
		share = min(share, float64(limit)/float64(r.ledger.inFlight()+1))
	}
	if used := f.inUse(r); used > 0 && !r.sequences.known() {
		needed := used + max(0, request.Tokens-int(held.Pending)) + request.Extra
		share = min(share, float64(r.memory())/float64(needed))
	}
	return share
}

// memory is the size of a replica's KV cache for requests that run, in tokens: what
// was learned, else the larger one of what is reported and what is believed without:
// a replica that seems full for want of a better number gets nothing to disprove it.
func (r *replica) memory() int {
	if r.learned > 0 {
		return r.learned
	}
	return max(r.capacity, r.reported)
}

// inUse is about how many tokens of KV cache a replica's requests take up: their
// prompts, of which what several share counts once, as paged caches hold it once,
// and half of the answers that are being decoded.
func (f *Fleet) inUse(r *replica) int {
	return r.ledger.unindexed + f.residency.InUse(r.slot) + r.ledger.answers/2
}
