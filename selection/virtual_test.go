package selection

import (
	"container/list"
	"math"
	"time"
)

// virtual is a fleet of the simplest engines: prefills one after the other,
// decoding beside them, an LRU of whole blocks.
type virtual struct {
	fleet    *Fleet
	replicas []string
	now      time.Time
	slow     map[string]float64
	free     map[string]time.Time // when the prefills before are done
	caches   map[string]*lru
	computed map[string]int // tokens

	open []virtualEnd
}

// virtualEnd is a request under way.
type virtualEnd struct {
	booking   *Booking
	first, at time.Time
	usage     Usage
	found     int
	begun     bool
}

func newVirtual(f *Fleet, replicas []string) *virtual {
	v := &virtual{
		fleet: f, replicas: replicas, now: at(0), slow: map[string]float64{}, free: map[string]time.Time{},
		caches: map[string]*lru{}, computed: map[string]int{},
	}
	for _, r := range replicas {
		v.slow[r] = 1
		v.caches[r] = newLRU(1 << 30)
	}
	return v
}

// spacing is the time between two requests on one replica's share.
const spacing = 150 * time.Millisecond

// serve sends a request and moves time on. The answer says usage, and how much
// was found in the cache if usage is Checked.
func (v *virtual) serve(request *Request, usage Usage) *Booking {
	v.now = v.now.Add(spacing / time.Duration(len(v.replicas)))
	v.catchUp(v.now)
	b := v.fleet.Place(v.now, request, v.replicas)
	replica := b.Estimate.Replica
	found := v.caches[replica].use(request.Blocks)
	v.computed[replica] += request.Tokens - found
	if usage.Prompt = request.Tokens; usage.Checked {
		usage.Cached = found
	}
	first := v.now
	if v.free[replica].After(first) {
		first = v.free[replica]
	}
	speed := DefaultSpeed
	first = first.Add(seconds(v.slow[replica] * speed.prefill(float64(found), float64(request.Tokens-found))))
	v.free[replica] = first
	end := first.Add(seconds(v.slow[replica] * float64(usage.Output) * speed.interToken(2, float64(request.Tokens))))
	v.open = append(v.open, virtualEnd{booking: b, first: first, at: end, usage: usage, found: found})
	return b
}

// catchUp reports what has happened up to now.
func (v *virtual) catchUp(now time.Time) {
	for {
		next, at := -1, now
		for i, o := range v.open {
			due := o.at
			if !o.begun {
				due = o.first
			}
			if !due.After(at) {
				next, at = i, due
			}
		}
		if next < 0 {
			return
		}
		if o := &v.open[next]; !o.begun {
			o.begun = true
			o.booking.FirstToken(at)
		} else {
			o.booking.End(at, o.usage)
			v.open = append(v.open[:next], v.open[next+1:]...)
		}
	}
}

// finish lets everything end.
func (v *virtual) finish() {
	v.now = v.now.Add(time.Hour)
	v.catchUp(v.now)
}

// report lets every replica tell its hit counters.
func (v *virtual) report() {
	for _, replica := range v.replicas {
		nan := math.NaN()
		v.fleet.Report(v.now, replica, &Report{
			At: v.now, Running: nan, Waiting: nan, CapacityTokens: nan, Slots: nan,
			PrefixQueries: float64(v.caches[replica].queries), PrefixHits: float64(v.caches[replica].hits),
		})
	}
}

// lru is a cache that evicts what was used least recently, the end of a prompt
// before its beginning.
type lru struct {
	capacity, tokens int
	order            *list.List
	blocks           map[uint64]*list.Element

	queries, hits int // tokens
}

type lruBlock struct {
	key    uint64
	tokens int
}

func newLRU(capacity int) *lru {
	return &lru{capacity: capacity, order: list.New(), blocks: map[uint64]*list.Element{}}
}

// use looks a prompt up, returns how many of its tokens are found, and keeps it.
func (c *lru) use(blocks []Block) (found int) {
	for _, b := range blocks {
		if c.blocks[b.Key] == nil {
			break
		}
		found = int(b.Tokens)
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		c.touch(blocks, i)
	}
	for c.tokens > c.capacity {
		oldest := c.order.Remove(c.order.Front()).(lruBlock)
		delete(c.blocks, oldest.key)
		c.tokens -= oldest.tokens
	}
	c.queries += int(blocks[len(blocks)-1].Tokens)
	c.hits += found
	return found
}

func (c *lru) touch(blocks []Block, i int) {
	if e := c.blocks[blocks[i].Key]; e != nil {
		c.order.MoveToBack(e)
		return
	}
	tokens := int(blocks[i].Tokens)
	if i > 0 {
		tokens -= int(blocks[i-1].Tokens)
	}
	c.blocks[blocks[i].Key] = c.order.PushBack(lruBlock{key: blocks[i].Key, tokens: tokens})
	c.tokens += tokens
}

func (c *lru) clear() {
	empty := newLRU(c.capacity)
	empty.queries, empty.hits = c.queries, c.hits
	*c = *empty
}
