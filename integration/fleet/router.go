package fleet

import (
	"fmt"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// Request is one request on its way through the fleet.
type Request struct {
	// Blocks and Prompt, its length in tokens, are what a router can see.
	Blocks []selection.Block
	Prompt int
	// Session is the same for all turns of a session.
	Session uint64
	// Turn is where it comes from. No rule looks at the answer's length.
	Turn *workload.Turn
	// Arrived is when the router got it, Replica where it went.
	Arrived time.Duration
	Replica int

	sequence engine.Request
	history  *history
	user     int
	foreign  bool // went past the router
	placed   any  // the router's own
}

// Cached is how many tokens of the prompt the replica found in its cache. It is
// known with the answer's end.
func (r *Request) Cached() int { return r.sequence.Cached }

// Router is a routing rule with what it remembers. Calls come in order of time.
type Router interface {
	// Choose returns one of the candidates, which are numbers of replicas in
	// ascending order, and books the request there.
	Choose(now time.Duration, r *Request, candidates []int) int
	// FirstToken and End report on the answer and what it says of itself, Fail
	// that the replica was lost.
	FirstToken(now time.Duration, r *Request)
	End(now time.Duration, r *Request, usage selection.Usage)
	Fail(now time.Duration, r *Request)
}

// origin is the time that virtual time counts from.
var origin = time.Unix(1_700_000_000, 0)

// cacheAware is the policy itself.
type cacheAware struct {
	fleet     *selection.Fleet
	profiles  []engine.Profile
	addresses []string
	buffer    []string
	capacity  int // configured
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
	fleet, ok := any(c.fleet).(interface {
		SetSpeed(now time.Time, address string, speed selection.Speed)
	})
	if !ok {
		panic("package selection cannot be told speeds yet")
	}
	for i, p := range c.profiles {
		fleet.SetSpeed(origin, c.addresses[i], speedOf(p))
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
	b := c.fleet.Place(origin.Add(now), &selection.Request{
		Model: "m", Blocks: r.Blocks, Tokens: r.Prompt, Streamed: true, Capacity: c.capacity,
	}, c.buffer)
	r.placed = b
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

func (c *cacheAware) End(now time.Duration, r *Request, usage selection.Usage) {
	r.placed.(*selection.Booking).End(origin.Add(now), usage)
}

func (c *cacheAware) Fail(now time.Duration, r *Request) {
	r.placed.(*selection.Booking).Fail(origin.Add(now), selection.FailureReplica)
}
