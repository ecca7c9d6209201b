package selection

// hintTokens is how many prompt tokens a hint stands for: about the system
// prompt and the tools that the requests of one session share.
const hintTokens = 1024

// Recognises tells whether some replica is known to have served one of the
// request's hints, so that there is something to match though it has no text.
func (f *Fleet) Recognises(request *Request) bool {
	return request.searchesHints() && f.matchHints(request, make([]Match, f.residency.Slots())) != request
}

// searchesHints tells whether hints are all there is to match.
func (r *Request) searchesHints() bool {
	return r.Work != Light && len(r.Blocks) == 0 && len(r.Hints) > 0
}

// matchHints finds which replicas served the first hint that any of them
// served. If there is one, it returns the request as it is to be estimated: with
// a prompt of hintTokens, all of which those replicas hold.
func (f *Fleet) matchHints(request *Request, into []Match) *Request {
	for _, hint := range request.Hints {
		f.residency.Match([]Block{{Key: hint, Tokens: hintTokens}}, into)
		for _, m := range into {
			if m.Maybe == 0 {
				continue
			}
			hinted := *request
			hinted.hinted = true
			hinted.Tokens = hintTokens
			return &hinted
		}
	}
	return request
}

// marks is what a booking leaves on its replica: hints, as blocks of no
// tokens, then the prompt's chain. So a hint stays as long as the blocks of its
// request, and within the same memory.
func (r *Request) marks() []Block {
	if r.Work == Light {
		return nil
	}
	if len(r.Hints) == 0 {
		return r.Blocks
	}
	marks := make([]Block, len(r.Hints), len(r.Hints)+len(r.Blocks))
	for i, hint := range r.Hints {
		marks[i].Key = hint
	}
	return append(marks, r.Blocks...)
}
