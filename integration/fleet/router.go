package fleet

import (
	"fmt"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// Request is one request on its way through the fleet.
type Request struct {
	// Texts, and Text for the whole of it, are what a router can see. It makes
	// Blocks of them and takes the prompt to have Estimated tokens.
	Texts     []tokenizer.Block
	Text      tokenizer.Text
	Blocks    []selection.Block
	Estimated int
	// Prompt is its length in tokens.
	Prompt int
	// Session is the same for all turns of a session.
	Session uint64
	// Turn is where it comes from. No rule looks at the answer's length.
	Turn *workload.Turn
	// Arrived is when the router got it, Placed when it was last placed, on Replica.
	Arrived, Placed time.Duration
	Replica         int
	// Promised is how many tokens the router expected that replica to have cached.
	Promised int

	sequence engine.Request
	history  *history
	user     int
	foreign  bool // went past the router
	telling  bool // the answer tells what the engine's dialect does
	dialect  engine.Dialect
	placed   any // the router's own
}

// Cached is how many tokens of the prompt the replica found in its cache. It is
// known with the answer's end.
func (r *Request) Cached() int { return r.sequence.Cached }

// Usage is what the answer said of itself, which depends on the engine.
func (r *Request) Usage() selection.Usage {
	usage := selection.Usage{Output: r.Turn.Answer.Tokens}
	if !r.telling {
		return usage
	}
	usage.Prompt = r.Prompt
	if r.dialect == engine.VLLMPages || r.dialect == engine.LlamaCppPages {
		usage.Cached, usage.Checked = r.Cached(), true
	}
	if r.dialect == engine.LlamaCppPages || r.dialect == engine.OllamaPages {
		usage.Prefill = (r.sequence.FirstToken - r.sequence.Admitted).Seconds()
	}
	return usage
}

// Router is a routing rule with what it remembers. Calls come in order of time.
type Router interface {
	// Configure comes before all else.
	Configure(k Knowledge)
	// Report hands over what a replica said of itself a short while ago.
	Report(now time.Duration, replica int, report *selection.Report)
	// Choose returns one of the candidates, which are numbers of replicas in
	// ascending order, and books the request there.
	Choose(now time.Duration, r *Request, candidates []int) int
	// FirstToken and End report on the answer, Fail that the replica was lost.
	FirstToken(now time.Duration, r *Request)
	End(now time.Duration, r *Request)
	Fail(now time.Duration, r *Request)
}

// origin is the time that virtual time counts from.
var origin = time.Unix(1_700_000_000, 0)

// model is what all requests ask for.
const model = "m"

// cacheAware is the policy itself.
type cacheAware struct {
	fleet     *selection.Fleet
	ratios    tokenizer.Ratios
	profiles  []engine.Profile
	addresses []string
	buffer    []string
	capacity  int      // configured
	choosing  *Request // the last one that a replica was chosen for
}

// CacheAware makes a router of package selection, on the plain-map index.
func CacheAware(profiles []engine.Profile, seed uint64) Router {
	return NewCacheAware(selection.NewFleet(selection.NewMapStore(), seed), profiles)
}

// NewCacheAware makes a router of a given fleet.
func NewCacheAware(f *selection.Fleet, profiles []engine.Profile) Router {
	c := &cacheAware{fleet: f, profiles: profiles}
	for i := range profiles {
		c.addresses = append(c.addresses, fmt.Sprintf("replica-%d", i))
	}
	return c
}

func (c *cacheAware) Configure(k Knowledge) {
	c.capacity = int(k.Capacity * float64(c.profiles[0].Capacity()))
	if !k.Speeds {
		return
	}
	for i, p := range c.profiles {
		c.fleet.SetSpeed(origin, c.addresses[i], speedOf(p))
	}
}

func (c *cacheAware) Report(now time.Duration, replica int, report *selection.Report) {
	c.fleet.Report(origin.Add(now), c.addresses[replica], report)
}

func (c *cacheAware) Choose(now time.Duration, r *Request, candidates []int) int {
	c.buffer = c.buffer[:0]
	for _, i := range candidates {
		c.buffer = append(c.buffer, c.addresses[i])
	}
	r.estimate(c.ratios.Of(model))
	c.choosing = r
	b := c.fleet.Place(origin.Add(now), &selection.Request{
		Model: model, Blocks: r.Blocks, Tokens: r.Estimated, Streamed: true, Capacity: c.capacity,
	}, c.buffer)
	r.placed = b
	r.Promised = int(float64(b.Estimate.Matched) * float64(r.Prompt) / float64(max(1, r.Estimated)))
	for k, address := range c.buffer {
		if address == b.Estimate.Replica {
			return candidates[k]
		}
	}
	panic("placed on a replica that is no candidate: " + b.Estimate.Replica)
}

func (c *cacheAware) FirstToken(now time.Duration, r *Request) {
	r.placed.(*selection.Booking).FirstToken(origin.Add(now))
}

func (c *cacheAware) End(now time.Duration, r *Request) {
	usage := r.Usage()
	if usage.Prompt > 0 {
		c.ratios.Learn(model, r.Text, usage.Prompt)
	}
	r.placed.(*selection.Booking).End(origin.Add(now), usage)
}

func (c *cacheAware) Fail(now time.Duration, r *Request) {
	r.placed.(*selection.Booking).Fail(origin.Add(now), selection.FailureReplica)
}
