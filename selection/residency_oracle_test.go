package selection

// oracle is a second, naive model of the same replicas: exact lists of what was
// used when. It knows for each block which levels are right, within the
// resolution that buckets have.
type oracle struct {
	now      int
	replicas []*oracleReplica
}

type oracleReplica struct {
	capacity int
	uses     map[use]*oracleUse
	answers  int // numbers old answers, which stay in the cache unnamed
}

// use names something that takes up cache: a block, or the answer after it.
type use struct {
	key    uint64
	answer int // 0: the block, 1: the remembered answer, more: older ones
}

type oracleUse struct {
	tokens    int
	last      int // 0: not used by a finished request yet
	pins      int
	unproved  span[bool] // pending, perhaps
	forgotten bool       // may have been dropped as too old even for a ghost
}

type span[T any] struct{ low, high T }

type oracleClaim struct {
	replica   *oracleReplica
	blocks    []Block
	confirmed bool
}

func (o *oracle) join(capacity int) {
	o.replicas = append(o.replicas, &oracleReplica{capacity: capacity, uses: map[use]*oracleUse{}})
}

func (r *oracleReplica) forget() { clear(r.uses) }

// slack is how far the sums over buckets may be from the exact ones.
func (r *oracleReplica) slack() int { return 3*r.capacity/bucketsPerCapacity + 4*oracleMaxBlock }

const oracleMaxBlock = 160

// distances returns the tokens used since u, without and with those of running
// requests, u's own excluded.
func (r *oracleReplica) distances(u *oracleUse) (unpinned, all int) {
	for _, other := range r.uses {
		switch {
		case other.pins > 0:
			all += other.tokens
		case other.last > u.last:
			unpinned += other.tokens
		}
	}
	return unpinned, unpinned + all
}

// levels returns the lowest and the highest level that is right for u.
func (r *oracleReplica) levels(id use) span[level] {
	u := r.uses[id]
	switch {
	case u == nil:
		return span[level]{}
	case u.pins > 0:
		s := span[level]{levelSure, levelSure}
		if u.unproved.high {
			s.low = levelPending
		}
		if u.unproved.low {
			s.high = levelPending
		}
		return s
	}
	unpinned, all := r.distances(u)
	s := span[level]{r.ageLevel(all+u.tokens+r.slack(), unpinned+u.tokens+r.slack()), r.ageLevel(all-r.slack(), unpinned-r.slack())}
	if u.forgotten {
		s.low = levelAbsent
	}
	return s
}

func (r *oracleReplica) ageLevel(distance, unpinned int) level {
	switch {
	case unpinned > window*r.capacity:
		return levelAbsent
	case float64(distance) > maybeShare*float64(r.capacity):
		return levelGhost
	case float64(distance) > sureShare*float64(r.capacity):
		return levelMaybe
	}
	return levelSure
}

func (r *oracleReplica) held() int {
	all := 0
	for _, u := range r.uses {
		all += u.tokens
	}
	return min(all, max(r.capacity, r.inUse()))
}

func (r *oracleReplica) inUse() (tokens int) {
	for _, u := range r.uses {
		if u.pins > 0 {
			tokens += u.tokens
		}
	}
	return tokens
}

// settle notes what is too old to be remembered for sure, and drops what is
// certainly forgotten and could only slow the oracle down.
func (r *oracleReplica) settle() {
	for id, u := range r.uses {
		if u.pins > 0 {
			continue
		}
		unpinned, _ := r.distances(u)
		if unpinned+u.tokens+r.slack() > window*r.capacity {
			u.forgotten = true
		}
		if unpinned > 2*window*r.capacity {
			delete(r.uses, id)
		}
	}
}

func (o *oracle) book(slot Slot, blocks []Block) *oracleClaim {
	r := o.replicas[slot]
	before := map[uint64]span[level]{}
	for _, b := range blocks {
		before[b.Key] = r.levels(use{key: b.Key})
	}
	start := 0
	for _, b := range blocks {
		id := use{key: b.Key}
		u := r.uses[id]
		if u == nil {
			u = &oracleUse{tokens: int(b.Tokens) - start}
			r.uses[id] = u
		}
		start = int(b.Tokens)
		if u.pins == 0 {
			u.unproved = span[bool]{}
		}
		u.pins++
		u.unproved.low = u.unproved.low || before[b.Key].high < levelPending
		u.unproved.high = u.unproved.high || before[b.Key].low < levelPending
	}
	return &oracleClaim{replica: r, blocks: blocks}
}

func (c *oracleClaim) confirm() {
	if c.confirmed {
		return
	}
	c.confirmed = true
	for i, b := range c.blocks {
		c.replica.uses[use{key: b.Key}].unproved = span[bool]{}
		if i+1 < len(c.blocks) && !b.Reply && c.blocks[i+1].Reply {
			delete(c.replica.uses, use{b.Key, 1})
		}
	}
}

func (o *oracle) release(c *oracleClaim, generated int) {
	c.confirm()
	if last := c.blocks[len(c.blocks)-1]; generated > 0 {
		id := use{last.Key, 1}
		if old := c.replica.uses[id]; old != nil {
			c.replica.answers++
			c.replica.uses[use{last.Key, 1 + c.replica.answers}] = old
		}
		o.now++
		c.replica.uses[id] = &oracleUse{tokens: generated, last: o.now}
	}
	for i := len(c.blocks) - 1; i >= 0; i-- {
		o.now++
		u := c.replica.uses[use{key: c.blocks[i].Key}]
		u.pins--
		u.last, u.forgotten = o.now, false
	}
	c.replica.settle()
}

func (o *oracle) undo(c *oracleClaim) {
	if c.confirmed {
		o.release(c, 0)
		return
	}
	for _, b := range c.blocks {
		id := use{key: b.Key}
		u := c.replica.uses[id]
		u.pins--
		if u.pins == 0 && u.last == 0 {
			delete(c.replica.uses, id)
		}
	}
	c.replica.settle()
}

// match returns the least and the most tokens that may match on a replica at a
// level or above.
func (r *oracleReplica) match(blocks []Block, l level) span[int] {
	levels := make([]span[level], len(blocks))
	for i, b := range blocks {
		levels[i] = r.levels(use{key: b.Key})
	}
	sure, perhaps := 0, 0 // blocks
	for sure < len(blocks) && levels[sure].low >= l {
		sure++
	}
	for perhaps < len(blocks) && levels[perhaps].high >= l {
		perhaps++
	}
	s := span[int]{tokensOf(blocks, sure), tokensOf(blocks, perhaps)}
	if sure == perhaps {
		s.low += r.tail(blocks, sure, l, false)
	}
	for i := 0; i <= perhaps; i++ { // the answer may go on where blocks of another one are held
		s.high = max(s.high, tokensOf(blocks, i)+r.tail(blocks, i, l, true))
	}
	return s
}

func tokensOf(blocks []Block, count int) int {
	if count == 0 {
		return 0
	}
	return int(blocks[count-1].Tokens)
}

// tail returns the generated tokens that continue a match of count blocks.
func (r *oracleReplica) tail(blocks []Block, count int, l level, perhaps bool) int {
	if count == 0 || count == len(blocks) || blocks[count-1].Reply || !blocks[count].Reply {
		return 0
	}
	id := use{blocks[count-1].Key, 1}
	levels := r.levels(id)
	if levels.low < l && !(perhaps && levels.high >= l) {
		return 0
	}
	end := count
	for end < len(blocks) && blocks[end].Reply {
		end++
	}
	return min(r.uses[id].tokens, tokensOf(blocks, end)-tokensOf(blocks, count))
}
