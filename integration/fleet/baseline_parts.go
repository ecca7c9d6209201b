package fleet

import (
	"sort"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

func slot(replica int) selection.Slot { return selection.Slot(replica) }

// head names the first 256 tokens of a prompt, or all of a shorter one.
func head(r *Request) uint64 {
	return r.Blocks[min(len(r.Blocks)-1, 1)].Key
}

// client is what a sticky router knows a conversation by.
func (r *Request) client() uint64 {
	if c := r.history.session.Client; c != 0 {
		return c
	}
	return r.Session
}

// ring is a consistent hash ring with 256 places for every replica.
type ring struct {
	at       []uint64
	replicas []int
}

func newRing(replicas int) *ring {
	r := &ring{}
	for i := range replicas {
		for k := range uint64(256) {
			r.at = append(r.at, mix(mix(uint64(i)+0x816)+k))
			r.replicas = append(r.replicas, i)
		}
	}
	sort.Sort(r)
	return r
}

func (r *ring) Len() int           { return len(r.at) }
func (r *ring) Less(i, j int) bool { return r.at[i] < r.at[j] }
func (r *ring) Swap(i, j int) {
	r.at[i], r.at[j] = r.at[j], r.at[i]
	r.replicas[i], r.replicas[j] = r.replicas[j], r.replicas[i]
}

// walk returns the first replica from a key on that is accepted.
func (r *ring) walk(key uint64, accept func(i int) bool, otherwise int) int {
	start := sort.Search(len(r.at), func(i int) bool { return r.at[i] >= key })
	for k := range r.at {
		if i := r.replicas[(start+k)%len(r.at)]; accept(i) {
			return i
		}
	}
	return otherwise
}

// Preble takes prefill and decode times from its own profile of the model; here
// they are those of an 8B model on one H100.
const (
	e2PerToken  = 25e-6
	e2PerAnswer = 0.008 * 256 / 16 // seconds of decoding, shared by a batch of 16
)

// e2Seconds is the work of a request that computes so many tokens.
func e2Seconds(_ *Request, uncached int) float64 {
	return e2PerToken*float64(uncached) + e2PerAnswer
}

// window sums what was added in the last three minutes.
type window struct {
	at    []time.Duration
	value []float64
	head  int
	total float64
}

func (w *window) add(now time.Duration, value float64) {
	w.at, w.value = append(w.at, now), append(w.value, value)
	w.total += value
}

func (w *window) sum(now time.Duration) float64 {
	for w.head < len(w.at) && w.at[w.head] < now-3*time.Minute {
		w.total -= w.value[w.head]
		w.head++
	}
	if w.head > 1024 && w.head > len(w.at)/2 {
		w.at, w.value = append(w.at[:0], w.at[w.head:]...), append(w.value[:0], w.value[w.head:]...)
		w.head = 0
	}
	return w.total
}
