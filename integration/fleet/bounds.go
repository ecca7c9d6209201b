package fleet

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// Bounds are what no policy can beat: one cache for the whole fleet, which has
// every prompt from the moment it arrives, and a replica with nothing else to do
// for every request.
const (
	// InfiniteCache never forgets.
	InfiniteCache = "infinite-cache"
	// PooledLRU holds as much as all replicas together and forgets what was used
	// longest ago. A policy can have more hits than this where the recency of use
	// is a bad guide, but hardly.
	PooledLRU = "pooled-lru"
)

// Bounds are the names of the bounds.
func Bounds() []string { return []string{PooledLRU, InfiniteCache} }

// IsBound tells bounds from policies.
func IsBound(name string) bool { return slices.Contains(Bounds(), name) }

// runBound answers every request in the time that it takes alone.
func runBound(name string, o Options, series *Series, progress func(now time.Duration)) *Result {
	b := &bound{
		run: run{options: o, result: newResult(o)}, series: series, cache: pool{held: map[uint64]*list.Element{}},
		blockSize: o.Replicas[0].BlockSize, profiles: distinct(o.Replicas),
	}
	b.result.Computed = make([]int, 1) // one for all, so that it is in balance
	for _, p := range o.Replicas {
		b.cache.most += p.Blocks
	}
	if name == InfiniteCache {
		b.cache.most = 0
	}
	for user := range o.Workload.Users {
		b.begin(user, user)
	}
	for {
		b.beginOpen()
		switch {
		case len(b.ends) > 0 && (len(b.due) == 0 || b.ends[0].sequence.Finished <= b.due[0].at):
			b.end(heap.Pop(&b.ends).(*Request))
		case len(b.due) > 0:
			d := b.due.pop()
			b.now = d.at
			if progress != nil {
				progress(b.now)
			}
			b.answer(d)
		default:
			return b.result
		}
	}
}

// bound is a run without replicas.
type bound struct {
	run
	series    *Series
	cache     pool
	blockSize int
	profiles  []engine.Profile
	ends      endList
}

// answer looks a request up in the cache and sets the times of its answer.
func (b *bound) answer(d *due) {
	r := d.history.next(b.blockSize)
	if r == nil {
		return
	}
	r.Arrived, r.user, r.Session = b.now, d.user, uint64(d.session)
	s := &r.sequence
	full := (r.Prompt - 1) / b.blockSize // the last token must be computed
	s.Cached = b.blockSize * b.cache.take(s.Keys[:min(full, len(s.Keys))])
	for i := range b.profiles {
		first, end := b.profiles[i].Alone(s.Cached, s.Prompt, s.Output)
		if i == 0 || first < s.FirstToken-b.now {
			s.FirstToken = b.now + first
		}
		if i == 0 || end < s.Finished-b.now {
			s.Finished = b.now + end
		}
	}
	heap.Push(&b.ends, r)
}

func (b *bound) end(r *Request) {
	b.now = r.sequence.Finished
	// The last token of an answer is never computed further.
	b.cache.take(r.sequence.Keys[:(r.Prompt+r.sequence.Output-1)/b.blockSize])
	b.result.add(r)
	b.series.add(r)
	b.goOn(r)
}

// pool is a cache of blocks in order of use. Within one use the beginning of a
// prompt counts as used last.
type pool struct {
	held  map[uint64]*list.Element
	order list.List
	most  int // blocks; 0 for no end
}

// take uses the blocks of a prompt and returns how many of the first were held.
func (p *pool) take(keys []uint64) (hits int) {
	for hits < len(keys) && p.held[keys[hits]] != nil {
		hits++
	}
	for _, key := range slices.Backward(keys) {
		if e := p.held[key]; e != nil {
			p.order.MoveToFront(e)
		} else {
			p.held[key] = p.order.PushFront(key)
		}
	}
	for p.most > 0 && p.order.Len() > p.most {
		delete(p.held, p.order.Remove(p.order.Back()).(uint64))
	}
	return hits
}

// distinct are the profiles without those that occur twice.
func distinct(profiles []engine.Profile) (list []engine.Profile) {
	for _, p := range profiles {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// endList is a heap of requests by their end.
type endList []*Request

func (l endList) Len() int { return len(l) }
func (l endList) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].sequence.Finished, l[j].sequence.Finished), cmp.Compare(l[i].Session, l[j].Session)) < 0
}
func (l endList) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *endList) Push(x any)   { *l = append(*l, x.(*Request)) }
func (l *endList) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
