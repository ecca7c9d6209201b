package fleet

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRun reports how many seconds of virtual time one second of a
// processor simulates.
func BenchmarkRun(b *testing.B) {
	for _, replicas := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("%d", replicas), func(b *testing.B) {
			const virtual = 30 * time.Second
			s, err := ScenarioNamed("150-prefixes")
			if err != nil {
				b.Fatal(err)
			}
			// About one request a second for each replica.
			o, err := s.Options(replicas, 500.0/512/s.Saturation, 1, virtual, "")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				router, err := NewRouter(OwnPolicy, o.Replicas, 1)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Run(o, router); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(virtual.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "virtual-s/s")
			b.ReportMetric(float64(o.Workload.Requests()*b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
