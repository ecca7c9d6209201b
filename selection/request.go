package selection

// Work says what a request asks an engine to do.
type Work uint8

const (
	// Generate prefills a prompt and decodes an answer.
	Generate Work = iota
	// Prefill computes over the prompt only, as embeddings do.
	Prefill
	// Light costs an engine next to nothing and leaves its cache alone.
	Light
)

// Request is one request as the decision sees it.
type Request struct {
	Model string
	Work  Work
	// Blocks is the prompt's key chain, root first; empty when it could not be
	// read. It is kept after Place and must not change while the booking is open
	// or after it has ended in an answer.
	Blocks []Block
	// Hints are keys of sessions and the like that the request belongs to, most
	// telling first. They are matched, exactly, when there are no blocks.
	Hints  []uint64
	Tokens int // length of the prompt in tokens, estimated
	Extra  int // tokens of further prompts in the same request, never cached
	Output int // most tokens that the answer may have; 0 when the request sets no limit
	// Streamed tells that the answer's first token will be seen on its own.
	Streamed bool
	// Avoid lists replicas that failed this request before. They are chosen
	// only when there is no other.
	Avoid []string
	// Capacity is the size of one replica's KV cache in tokens, as the operator
	// configured it; 0 leaves it to what replicas report.
	Capacity int

	hinted bool // Tokens stand for what a hint found
}

// unindexed is how many tokens of the request the index does not get to know.
func (r *Request) unindexed() int {
	tokens := r.Tokens + r.Extra
	if n := len(r.Blocks); n > 0 && r.Work != Light {
		tokens -= int(r.Blocks[n-1].Tokens)
	}
	return max(0, tokens)
}

// Estimate is what a request is expected to cost on one replica. Times are in
// seconds.
type Estimate struct {
	Replica   string
	Held      Match   // prompt tokens that the replica holds, and how sure that is
	Matched   int     // prompt tokens expected to be found in its cache
	Uncached  int     // prompt tokens that it would have to compute
	Wait      float64 // until the prefill can begin
	Admission float64 // at most that, until there is a place in the running batch
	Prefill   float64
	Decode    float64
	Factor    float64 // what a second of this prefill costs everybody
	Failing   float64 // price of recent failures
	Cost      float64 // what is compared
}

// TTFT is the expected time to first token in seconds.
func (e *Estimate) TTFT() float64 { return e.Wait + e.Prefill }

// Reason says in one word why a replica was chosen.
type Reason string

const (
	// ReasonPrefix: it holds the longest prefix of all.
	ReasonPrefix Reason = "prefix"
	// ReasonHint: there is no text to match, and it served the same session before.
	ReasonHint Reason = "hint"
	// ReasonSpread: another one holds more of the prompt, but costs more.
	ReasonSpread Reason = "spread"
	// ReasonCold: no replica holds any of the prompt.
	ReasonCold Reason = "cold"
	// ReasonLoad: the request carries no prompt, so only load counts.
	ReasonLoad Reason = "load"
	// ReasonOnly: there was no choice.
	ReasonOnly Reason = "only"
)
