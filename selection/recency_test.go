package selection

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func newRecency(capacity int, epoch uint32) *recency {
	r := &recency{}
	r.reset(epoch)
	r.setCapacity(capacity)
	return r
}

// TestRecencyKeepsColdBlocks has a small hot set take nearly all uses, many
// times the capacity in all. What was used before and fits beside it must stay.
func TestRecencyKeepsColdBlocks(t *testing.T) {
	r := newRecency(100_000, 1)
	cold := r.stamp(50_000)
	hot := r.stamp(10_000)
	for range 10_000 {
		r.add(hot, -10_000)
		hot = r.stamp(10_000)
	}
	z := r.horizon()
	if z.age(cold) != levelSure {
		t.Errorf("cold block is at level %d, want %d", z.age(cold), levelSure)
	}
	if r.total != 60_000 {
		t.Errorf("%d tokens in all, want 60000", r.total)
	}
}

func TestRecencyLevels(t *testing.T) {
	r := newRecency(64_000, 1)
	first := r.stamp(1000)
	want := func(insert int64, l level) {
		t.Helper()
		for range insert / 1000 {
			r.stamp(1000)
		}
		if got := r.horizon().age(first); got != l {
			t.Errorf("level %d with %d tokens in all, want %d", got, r.total, l)
		}
	}
	want(59_000, levelSure)
	want(2_000, levelMaybe)
	want(5_000, levelMaybe)
	want(2_000, levelGhost)
	want(59_000, levelGhost)
	want(2_000, levelAbsent)
	if r.total > 129_000 {
		t.Errorf("remembers %d tokens, more than twice the capacity", r.total)
	}
}

func TestRecencyCountsPinned(t *testing.T) {
	r := newRecency(10_000, 1)
	epoch := r.stamp(100)
	for _, c := range []struct {
		pinned int64
		want   level
	}{{0, levelSure}, {9_000, levelSure}, {9_700, levelMaybe}, {12_000, levelGhost}} {
		r.pinned = c.pinned
		if got := r.horizon().age(epoch); got != c.want {
			t.Errorf("level %d with %d pinned, want %d", got, c.pinned, c.want)
		}
	}
}

func TestRecencyCapacity(t *testing.T) {
	r := newRecency(10_000, 1)
	epoch := r.stamp(100)
	for range 80 {
		r.stamp(100)
	}
	for _, c := range []struct {
		capacity int
		want     level
	}{{10_000, levelSure}, {8_200, levelMaybe}, {5_000, levelGhost}, {20_000, levelSure}, {0, levelGhost}, {-1, levelGhost}, {math.MaxInt, levelSure}} {
		r.setCapacity(c.capacity)
		if got := r.horizon().age(epoch); got != c.want {
			t.Errorf("level %d at capacity %d, want %d", got, c.capacity, c.want)
		}
	}
}

// TestRecencyInvariants makes random moves from near the wrap of epochs.
func TestRecencyInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecency(rapid.IntRange(1, 5000).Draw(t, "capacity"), math.MaxUint32-100)
		type stamp struct {
			epoch  uint32
			tokens int64
		}
		var stamps []stamp
		t.Repeat(map[string]func(*rapid.T){
			"stamp": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "count") {
					tokens := int64(1 + len(stamps)%37)
					stamps = append(stamps, stamp{r.stamp(tokens), tokens})
				}
			},
			"again": func(t *rapid.T) {
				if len(stamps) == 0 {
					t.Skip()
				}
				s := &stamps[rapid.IntRange(0, len(stamps)-1).Draw(t, "index")]
				r.add(s.epoch, -s.tokens)
				s.epoch = r.stamp(s.tokens)
			},
			"": func(t *rapid.T) {
				var known, total int64
				for _, s := range stamps {
					if r.find(s.epoch) >= 0 {
						known += s.tokens
					}
				}
				for i, b := range r.buckets {
					total += b.tokens
					if b.tokens < 0 || i > 0 && !before(r.buckets[i-1].start, b.start) {
						t.Fatalf("bad bucket %d of %v", i, r.buckets)
					}
				}
				if known != r.total || total != r.total {
					t.Fatalf("total %d, buckets %d, stamps %d", r.total, total, known)
				}
				if len(r.buckets) > maxBuckets+1 {
					t.Fatalf("%d buckets", len(r.buckets))
				}
				z := r.horizon()
				if before(z.sure, z.maybe) || before(z.maybe, z.oldest) {
					t.Fatalf("horizon out of order: %+v", z)
				}
			},
		})
	})
}
