package module

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"
)

// errBodyFreed is what reads of a copy return after it has been given up.
var errBodyFreed = errors.New("reading request body: its copy has been freed")

// Sizes of a copy while it is being filled. A declared length is believed at
// once only up to maxFirstBodyCopy, so that headers alone cannot claim much memory.
const (
	minBodyCopy      = 4 << 10
	firstBodyCopy    = 16 << 10
	maxFirstBodyCopy = 1 << 20
	bodyCopyGrowth   = 4
)

// bodyBudget bounds the memory of all body copies together. A nil budget does
// not bound it.
type bodyBudget struct {
	limit int64
	used  atomic.Int64
}

func newBodyBudget(limit int64) *bodyBudget { return &bodyBudget{limit: limit} }

// take reserves n bytes, or nothing and returns false if they exceed the limit.
func (b *bodyBudget) take(n int) bool {
	if b == nil {
		return true
	}
	if b.used.Add(int64(n)) > b.limit {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// force reserves n bytes even beyond the limit.
func (b *bodyBudget) force(n int) {
	if b != nil {
		b.used.Add(int64(n))
	}
}

func (b *bodyBudget) give(n int) {
	if b != nil {
		b.used.Add(-int64(n))
	}
}

// bodyCopyPools holds free memory by size, from minBodyCopy up in powers of two.
var bodyCopyPools [32]sync.Pool

func bodyCopyClass(n int) int {
	return max(0, bits.Len(uint(n-1))-bits.Len(uint(minBodyCopy-1)))
}

func allocateBodyCopy(n int) *[]byte {
	class := bodyCopyClass(n)
	if memory, ok := bodyCopyPools[class].Get().(*[]byte); ok {
		return memory
	}
	memory := make([]byte, minBodyCopy<<class)
	return &memory
}

func recycleBodyCopy(memory *[]byte) { bodyCopyPools[bodyCopyClass(len(*memory))].Put(memory) }

// bodyCopy is the copy of a body's beginning. It is filled by one goroutine
// and then shared by readers that join and leave. Its memory is reused once
// it has been released and all readers have left; if the request ends before
// they do, the memory is left to the garbage collector instead.
type bodyCopy struct {
	budget *bodyBudget
	first  int // size to begin with
	limit  int // size never exceeded
	size   int

	mu       sync.Mutex
	memory   *[]byte // nil when empty and when freed
	readers  int
	released bool
	stop     func() bool // stops waiting for the request's end
}

// newBodyCopy returns an empty copy for a body of the given length, negative
// if unknown, of which limit bytes are wanted.
func newBodyCopy(budget *bodyBudget, limit, length int64) *bodyCopy {
	first := int64(firstBodyCopy)
	if length >= 0 {
		limit = min(limit, length)
		first = maxFirstBodyCopy
	}
	return &bodyCopy{budget: budget, first: int(min(first, limit)), limit: int(limit)}
}

// fill appends what src yields. It returns the error that src ended with, nil
// if the limit came first or the budget is exhausted.
func (c *bodyCopy) fill(src io.Reader) error {
	for fruitless := 0; fruitless < 100; fruitless++ {
		before := c.size
		if err := c.fillOnce(src); err != nil || c.size == before && !c.grow() {
			return err
		}
		if c.size > before {
			fruitless = 0
		}
	}
	return nil
}

// fillOnce appends what a single read of src yields, if there is room.
func (c *bodyCopy) fillOnce(src io.Reader) error {
	if !c.grow() {
		return nil
	}
	n, err := src.Read((*c.memory)[c.size:min(len(*c.memory), c.limit)])
	c.size += n
	return err
}

// grow makes room for more bytes, within the budget and beyond it only for the
// smallest of copies. It tells whether there is room.
func (c *bodyCopy) grow() bool {
	if c.size == c.limit {
		return false
	}
	want := c.first
	if c.memory != nil {
		if c.size < len(*c.memory) {
			return true
		}
		want = min(bodyCopyGrowth*len(*c.memory), c.limit)
	}
	want = minBodyCopy << bodyCopyClass(want)
	if !c.budget.take(want) {
		if c.memory != nil {
			return false
		}
		want = minBodyCopy
		c.budget.force(want)
	}
	c.replace(allocateBodyCopy(want))
	return true
}

func (c *bodyCopy) replace(memory *[]byte) {
	if c.memory != nil {
		copy(*memory, (*c.memory)[:c.size])
		c.budget.give(len(*c.memory))
		recycleBodyCopy(c.memory)
	}
	c.memory = memory
}

// endWith gives the copy up when ctx ends.
func (c *bodyCopy) endWith(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.abandon)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
}

// bytes returns the copy, nil if it has been freed.
func (c *bodyCopy) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory == nil {
		return nil
	}
	return (*c.memory)[:c.size]
}

// readAt copies bytes from offset on into p.
func (c *bodyCopy) readAt(p []byte, offset int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory == nil {
		return 0, errBodyFreed
	}
	return copy(p, (*c.memory)[offset:c.size]), nil
}

// holds tells whether the copy has the bytes of p at offset.
func (c *bodyCopy) holds(p []byte, offset int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory != nil && bytes.HasPrefix((*c.memory)[offset:c.size], p)
}

func (c *bodyCopy) join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers++
}

func (c *bodyCopy) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers--
	c.freeUnused()
}

func (c *bodyCopy) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = true
	c.freeUnused()
}

// abandon releases the copy without waiting for its readers, who may hold
// parts of it for a little longer.
func (c *bodyCopy) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = true
	if c.readers > 0 && c.memory != nil {
		c.budget.give(len(*c.memory))
		c.memory = nil
		return
	}
	c.freeUnused()
}

func (c *bodyCopy) freeUnused() {
	if !c.released || c.readers > 0 || c.memory == nil {
		return
	}
	c.budget.give(len(*c.memory))
	recycleBodyCopy(c.memory)
	c.memory = nil
	if c.stop != nil {
		c.stop()
	}
}
