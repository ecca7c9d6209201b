package fleet

import (
	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// Oracle is the name of cache_aware with perfect knowledge of load and residency.
// It is no policy, since no router can have that, and no bound: it is what better
// knowledge would be worth to the same rule.
const Oracle = "oracle"

// oracle is cache_aware that is told the truth.
type oracle struct {
	*cacheAware
	truth truth
}

// truth is what a replica really holds of a request and has to do before it.
type truth func(replica int, r *Request) selection.Truth

func newOracle(profiles []engine.Profile, seed uint64) *oracle {
	f := selection.NewFleet(selection.NewMapStore(), seed)
	o := &oracle{cacheAware: NewCacheAware(f, profiles).(*cacheAware)}
	replicas := map[string]int{}
	for i, address := range o.addresses {
		replicas[address] = i
	}
	f.Reveal(func(address string) selection.Truth { return o.truth(replicas[address], o.choosing) })
	return o
}

func (o *oracle) Configure(k Knowledge) {
	o.truth = k.truth
	o.cacheAware.Configure(k)
}

// truth looks into a replica's engine.
func (f *run) truth(replica int, r *Request) selection.Truth {
	e := f.engines[replica]
	matched := e.Lookup(&r.sequence)
	if !e.Profile().Slots {
		matched = max(matched, f.underway(replica, r))
	}
	return selection.Truth{
		Matched: int(float64(matched) * float64(r.Estimated) / float64(r.Prompt)),
		Wait:    e.Backlog(f.now).Seconds(),
	}
}

// underway is how many tokens of a prompt a replica will hold when it has computed
// the prompts before it.
func (f *run) underway(replica int, r *Request) int {
	blocks := 0
	for _, other := range f.flying {
		if other.Replica == replica && other.sequence.FirstToken == 0 {
			blocks = common(other.sequence.Keys[:other.Prompt/f.blockSize()], r.sequence.Keys, blocks)
		}
	}
	return min(blocks*f.blockSize(), r.Prompt-1)
}

func (f *run) blockSize() int { return f.options.Replicas[0].BlockSize }

// common is how many keys are the same at the beginning, at least so many. A key
// tells of all that is before it, so that those need not be compared.
func common(a, b []uint64, least int) int {
	n := least
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
