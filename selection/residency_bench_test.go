package selection

import (
	"fmt"
	"runtime"
	"testing"
)

// benchStores are the contenders.
var benchStores = []struct {
	name string
	make func(testing.TB) Store
}{
	{"ristretto", func(tb testing.TB) Store {
		s, err := NewRistrettoStore(256 << 20)
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}},
	{"maps", func(testing.TB) Store { return NewMapStore() }},
}

func BenchmarkIndex(b *testing.B) {
	for _, store := range benchStores {
		for _, replicas := range []int{64, 512} {
			b.Run(fmt.Sprintf("match/%s/%d", store.name, replicas), func(b *testing.B) {
				benchmarkMatch(b, store.make(b), replicas)
			})
		}
		b.Run("record/"+store.name, func(b *testing.B) { benchmarkRecord(b, store.make(b)) })
		b.Run("renew/"+store.name, func(b *testing.B) { benchmarkRenew(b, store.make(b)) })
		b.Run("burst/"+store.name, func(b *testing.B) { benchmarkBurst(b, store.make(b)) })
		b.Run("memory/"+store.name, func(b *testing.B) { benchmarkMemory(b, store.make) })
	}
}

// longPrompt has 128k tokens in 300 blocks.
func longPrompt(name uint64) []Block { return chain(name, 300, 437) }

// chatPrompt has 8,000 tokens in 45 blocks, the first five of them shared.
func chatPrompt(into []Block, name uint64) []Block {
	into = into[:0]
	for i := range uint64(45) {
		key := mix(name<<20 + i + 1<<60)
		if i < 5 {
			key = mix(name%100<<20 + i)
		}
		into = append(into, Block{Key: key, Tokens: uint32(i+1) * 8000 / 45})
	}
	return into
}

// fill records other prompts, so that lookups meet an index of real size.
func fill(r *Residency, replicas, prompts int) {
	blocks := make([]Block, 0, 45)
	for i := range prompts {
		blocks = chatPrompt(blocks, uint64(i))
		for j := range 1 + i%2 {
			r.Book(start, Slot((i+j)%replicas), blocks).Release(0)
		}
	}
}

func join(r *Residency, replicas, capacity int) {
	for range replicas {
		r.Join(capacity)
	}
}

func benchmarkMatch(b *testing.B, store Store, replicas int) {
	r := NewResidency(store)
	defer r.Close()
	join(r, replicas, 5_000_000)
	fill(r, replicas, 10_000)
	const prompts = 16 // so that caches of the processor do not hold all
	for p := range uint64(prompts) {
		blocks := longPrompt(1<<20 + p)
		for i := range replicas {
			r.Book(start, Slot(i), blocks[:60+80*(i%4)]).Release(0)
		}
	}
	into := make([]Match, r.Slots())
	all := make([][]Block, prompts)
	for p := range all {
		all[p] = longPrompt(1<<20 + uint64(p))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		r.Match(all[i%prompts], into)
	}
	b.StopTimer()
	if into[3].Sure != 300*437 || into[0].Sure != 60*437 {
		b.Fatalf("wrong lengths: %+v", into[:4])
	}
}

// benchmarkRecord books and ends prompts that nobody has seen.
func benchmarkRecord(b *testing.B, store Store) {
	r := NewResidency(store)
	defer r.Close()
	join(r, 64, 1_000_000)
	blocks := make([]Block, 0, 45)
	b.ReportAllocs()
	b.ResetTimer()
	i := 0
	for ; b.Loop(); i++ {
		blocks = chatPrompt(blocks, uint64(i))
		claim := r.Book(start, Slot(i%64), blocks)
		claim.Confirm()
		claim.Release(0)
	}
	b.ReportMetric(8000*float64(i)/b.Elapsed().Seconds()/1e6, "Mtok/s")
	report(b, r)
}

// benchmarkRenew books and ends a prompt that the replica holds already.
func benchmarkRenew(b *testing.B, store Store) {
	r := NewResidency(store)
	defer r.Close()
	join(r, 64, 5_000_000)
	fill(r, 64, 10_000)
	blocks := make([]Block, 0, 45)
	b.ReportAllocs()
	b.ResetTimer()
	i := 0
	for ; b.Loop(); i++ {
		blocks = chatPrompt(blocks, uint64(i%10_000))
		claim := r.Book(start, Slot(i%10_000%64), blocks)
		claim.Confirm()
		claim.Release(0)
	}
	b.ReportMetric(8000*float64(i)/b.Elapsed().Seconds()/1e6, "Mtok/s")
	report(b, r)
}

// benchmarkBurst books 64 long prompts at once and looks for each right away.
func benchmarkBurst(b *testing.B, store Store) {
	r := NewResidency(store)
	defer r.Close()
	join(r, 64, 1_000_000)
	into := make([]Match, r.Slots())
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		for p := range 64 {
			blocks := longPrompt(uint64(i)<<8 + uint64(p))
			claim := r.Book(start, Slot(p), blocks)
			if r.Match(blocks, into); into[p].Pending != 300*437 {
				b.Fatalf("burst prompt %d matches %+v", p, into[p])
			}
			claim.Release(0)
		}
	}
	report(b, r)
}

// benchmarkMemory measures the heap that 100 million prompt tokens take.
func benchmarkMemory(b *testing.B, store func(testing.TB) Store) {
	var bytes int64
	for b.Loop() {
		before := heapBytes()
		r := NewResidency(store(b))
		join(r, 64, 4_000_000)
		fill(r, 64, 12_500)
		bytes = heapBytes() - before
		report(b, r)
		r.Close()
	}
	b.ReportMetric(float64(bytes)/(1<<20), "MiB/100Mtok")
}

func report(b *testing.B, r *Residency) {
	s := r.Stats()
	b.ReportMetric(float64(s.Entries), "entries")
	b.ReportMetric(float64(s.Dropped+s.Rejected+s.Evicted), "lost")
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
