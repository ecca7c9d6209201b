package fleet

import (
	"flag"
	"math"
	"testing"
	"time"
)

// What the router must learn without being told, in virtual time:
//
//	go test ./integration/fleet -run TestLearning -v -learning
//
// prints every figure beside its bar; without -learning one seed and fewer
// workloads are run. Runs that are compared have the same requests at the same
// times.

var learning = flag.Bool("learning", false, "run the tests of learning over all seeds and workloads")

// byVolume skips a test that simulates many requests in one goroutine when time
// is short, as under the race detector.
func byVolume(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short: simulates tens of thousands of requests")
	}
}

// learningSeeds are those of the runs.
func learningSeeds() []uint64 {
	if *learning {
		return []uint64{1, 2, 3, 4, 5}
	}
	return []uint64{1}
}

// long picks how long runs last.
func long(long, short time.Duration) time.Duration {
	if *learning {
		return long
	}
	return short
}

// compared is the bar for a ratio of two runs, which tells less of one seed.
func compared(most float64) float64 {
	if *learning {
		return most
	}
	return most + 0.15
}

// bar holds a figure against the most it may be.
func bar(t *testing.T, what string, figure, most float64) {
	t.Helper()
	verdict := "ok"
	if !(figure <= most) {
		verdict = "MISSED"
		t.Fail()
	}
	t.Logf("%-64s %8.3f  (at most %.3f) %s", what, figure, most, verdict)
}

// sample is what became of a request.
type sample struct {
	arrived, placed, admitted, finished time.Duration
	ttft                                time.Duration
	replica, prompt, cached, promise    int
}

// record runs cache_aware and notes every request in the order of their ends.
func record(t *testing.T, o Options, seed uint64) []sample {
	t.Helper()
	return recordUnder(t, OwnPolicy, o, seed)
}

func recordUnder(t *testing.T, policy string, o Options, seed uint64) []sample {
	t.Helper()
	var samples []sample
	o.watch.ended = func(r *Request) {
		samples = append(samples, sample{
			arrived: r.Arrived, placed: r.Placed, admitted: r.sequence.Admitted,
			finished: r.sequence.Finished, ttft: r.sequence.FirstToken - r.Arrived, replica: r.Replica,
			prompt: r.Prompt, cached: r.Cached(), promise: r.Promised,
		})
	}
	router, err := NewRouter(policy, o.Replicas, seed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(o, router); err != nil {
		t.Fatal(err)
	}
	return samples
}

// scenario draws a named scenario for eight replicas.
func scenario(t *testing.T, name string, load float64, seed uint64, duration time.Duration) Options {
	t.Helper()
	s, err := ScenarioNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Options(8, load, seed, duration, "")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// meanTTFT of requests that arrived from then on, in seconds.
func meanTTFT(samples []sample, from time.Duration) float64 {
	var times []time.Duration
	for _, s := range samples {
		if s.arrived >= from {
			times = append(times, s.ttft)
		}
	}
	return Mean(times)
}

// figures are one number for every seed.
type figures []float64

// geometric mean.
func (f figures) geometric() float64 {
	sum := 0.0
	for _, v := range f {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(f)))
}

func (f figures) mean() float64 {
	sum := 0.0
	for _, v := range f {
		sum += v
	}
	return sum / float64(len(f))
}
