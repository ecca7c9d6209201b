// Package measure tells tests and benchmarks what code costs, on machines that
// others use at the same time.
package measure

import (
	"runtime/metrics"
	"testing"
	"time"
)

// Allocated returns how many bytes this process has allocated on the heap,
// those that are free again included.
func Allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// hang is how long a call of microseconds may take before it is taken for endless.
const hang = 20 * time.Second

// unrelated is what others may allocate during a call, or have allocated before
// and is counted only now: the runtime counts by spans.
const unrelated = 4 << 20

// Bounded fails t if call allocates clearly more than so many bytes, and ends
// the process if it does not return. It is meant for fuzzing, which notices
// neither.
func Bounded(t testing.TB, most uint64, call func()) {
	t.Helper()
	endless := time.AfterFunc(hang, func() { panic("does not return") })
	defer endless.Stop()
	before := Allocated()
	call()
	if n := Allocated() - before; n > most+unrelated {
		t.Errorf("%d bytes allocated, want at most %d", n, most)
	}
}
