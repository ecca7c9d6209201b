package engine

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// clocks orders engines by their next event.
type clocks struct {
	next   []time.Duration
	order  []int
	placed []int
}

func (c *clocks) Len() int           { return len(c.order) }
func (c *clocks) Less(i, j int) bool { return c.next[c.order[i]] < c.next[c.order[j]] }
func (c *clocks) Swap(i, j int) {
	c.order[i], c.order[j] = c.order[j], c.order[i]
	c.placed[c.order[i]], c.placed[c.order[j]] = i, j
}
func (c *clocks) Push(any) {}
func (c *clocks) Pop() any { return nil }

func (c *clocks) set(engine int, at time.Duration) {
	c.next[engine] = at
	heap.Fix(c, c.placed[engine])
}

// BenchmarkFleet runs engines of the 8B profile in virtual time under chat-like
// traffic: 6,000 prompt tokens on average, two thirds of them from one of the
// last conversations on the same replica, and 340 output tokens. The metric is
// simulated seconds per second.
func BenchmarkFleet(b *testing.B) {
	for _, size := range []struct {
		replicas int
		rate     float64 // requests per second
	}{{8, 12}, {64, 64}, {512, 500}} {
		b.Run(fmt.Sprintf("replicas=%d/rate=%g", size.replicas, size.rate), func(b *testing.B) {
			f := newFleet(size.replicas)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N { // one simulated second
				f.run(time.Second, size.rate)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "x-real-time")
			b.ReportMetric(float64(f.requests)/float64(b.N), "requests/op")
		})
	}
}

type fleet struct {
	engines  []*Engine
	texts    [][][]uint64
	clocks   clocks
	now, due time.Duration
	rng      *rand.Rand
	requests int
}

func newFleet(n int) *fleet {
	f := &fleet{rng: rand.New(rand.NewPCG(1, 2)), texts: make([][][]uint64, n)}
	for i := range n {
		f.engines = append(f.engines, New(H100x8B))
		f.clocks.order = append(f.clocks.order, i)
		f.clocks.placed = append(f.clocks.placed, i)
		f.clocks.next = append(f.clocks.next, Never)
	}
	return f
}

func (f *fleet) run(d time.Duration, rate float64) {
	for end := f.now + d; ; {
		i := f.clocks.order[0]
		at := min(f.clocks.next[i], f.due)
		if at > end {
			f.now = end
			return
		}
		if at == f.due {
			i = f.requests % len(f.engines)
			if err := f.engines[i].Submit(at, f.request(i)); err != nil {
				panic(err)
			}
			f.due += time.Duration(f.rng.ExpFloat64() / rate * float64(time.Second))
		} else {
			f.engines[i].Advance(at)
		}
		f.clocks.set(i, f.engines[i].NextEvent())
	}
}

func (f *fleet) request(replica int) *Request {
	f.requests++
	prompt := 1000 + int(f.rng.ExpFloat64()*5000)
	output := 1 + int(f.rng.ExpFloat64()*340)
	blocks := (prompt + output) / 16
	keys := chain(uint64(f.requests), blocks)
	texts := f.texts[replica]
	if len(texts) > 0 && f.rng.IntN(3) > 0 {
		from := texts[f.rng.IntN(len(texts))]
		keys = fork(from, min(len(from), blocks), uint64(f.requests), blocks)
	}
	if len(texts) < 20 {
		f.texts[replica] = append(texts, keys)
	} else {
		texts[f.rng.IntN(len(texts))] = keys
	}
	return &Request{Keys: keys, Prompt: prompt, Output: output}
}
