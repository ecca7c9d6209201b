package fleet

import (
	"container/heap"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// clocks is a heap of replicas by their next event.
type clocks struct {
	next   []time.Duration
	order  []int
	placed []int
}

func (c *clocks) add(replica int) {
	c.next = append(c.next, engine.Never)
	c.order = append(c.order, replica)
	c.placed = append(c.placed, replica)
}

func (c *clocks) set(replica int, at time.Duration) {
	c.next[replica] = at
	heap.Fix(c, c.placed[replica])
}

func (c *clocks) Len() int { return len(c.order) }
func (c *clocks) Less(i, j int) bool {
	a, b := c.order[i], c.order[j]
	return c.next[a] < c.next[b] || c.next[a] == c.next[b] && a < b
}
func (c *clocks) Swap(i, j int) {
	c.order[i], c.order[j] = c.order[j], c.order[i]
	c.placed[c.order[i]], c.placed[c.order[j]] = i, j
}
func (c *clocks) Push(any) {}
func (c *clocks) Pop() any { return nil }

// due is a session whose next turn is to be sent.
type due struct {
	at      time.Duration
	history *history
	user    int
	session int
}

type dueList []*due

func (d dueList) Len() int { return len(d) }
func (d dueList) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].session < d[j].session
}
func (d dueList) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dueList) Push(x any)   { *d = append(*d, x.(*due)) }
func (d *dueList) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
func (d *dueList) pop() *due { return heap.Pop(d).(*due) }
