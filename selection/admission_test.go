package selection

import (
	"math"
	"testing"
	"time"
)

// after is a prompt of so many tokens behind a prefix that others share.
func after(prefix *Request, name uint64, tokens int) *Request {
	r := chat(name, tokens)
	for i := range r.Blocks {
		r.Blocks[i].Tokens += uint32(prefix.Tokens)
	}
	r.Blocks = append(append([]Block(nil), prefix.Blocks...), r.Blocks...)
	r.Tokens += prefix.Tokens
	return r
}

// TestSharedPrefixTakesMemoryOnce prices a request on a replica whose KV cache has
// room for all prompts in flight if it holds what they share once, and for half of
// them if it does not.
func TestSharedPrefixTakesMemoryOnce(t *testing.T) {
	prefix := chat(1, 50_000)
	for _, tt := range []struct {
		name  string
		price *Request
		ten   func(name uint64) *Request
		share float64
	}{
		{"shared", after(prefix, 99, 1000), func(name uint64) *Request { return after(prefix, name, 1000) }, 1},
		{"a part of it", after(prefix, 99, 40_000), func(name uint64) *Request { return after(prefix, name, 1000) }, 1},
		{"more than fits", after(prefix, 99, 90_000), func(name uint64) *Request { return after(prefix, name, 1000) }, 100.0 / 150},
		{"nothing shared", chat(99, 50_000), func(name uint64) *Request { return chat(name, 15_000) }, 100.0 / 200},
		{"further prompts", &Request{Tokens: 10_000, Extra: 40_000, Streamed: true}, func(uint64) *Request {
			return &Request{Tokens: 15_000, Streamed: true}
		}, 100.0 / 200},
		{"no text", &Request{Tokens: 50_000, Streamed: true}, func(uint64) *Request {
			return &Request{Tokens: 15_000, Streamed: true}
		}, 100.0 / 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, replicas := newTestFleet(), addresses(1)
			tt.price.Capacity = 100_000
			for i := range uint64(10) {
				request := tt.ten(100 + i)
				request.Capacity = 100_000
				f.Place(at(0), request, replicas)
			}
			e := f.Explain(at(time.Hour), tt.price, replicas)[0]
			if want := e.Decode * (1/tt.share - 1); !(math.Abs(e.Admission-want) <= 1e-9*e.Decode) {
				t.Errorf("%g s until there is room, want %g, where an answer takes %g", e.Admission, want, e.Decode)
			}
		})
	}
}

// TestAdmissionAndQueuePassTogether has a request wait for a slot behind prefills:
// the longer of the two counts.
func TestAdmissionAndQueuePassTogether(t *testing.T) {
	for _, tokens := range []int{100, 200_000} {
		f, replicas := newTestFleet(), addresses(1)
		report := silent()
		report.Slots = 2
		f.Report(at(0), replicas[0], report)
		for i := range uint64(4) {
			f.Place(at(0), chat(i, tokens), replicas)
		}
		e := f.Explain(at(0), chat(10, 100), replicas)[0]
		first, others := f.replicas[replicas[0]].ledger.wait(at(0))
		if queue := first + others; e.Admission != e.Decode*1.5 || e.Wait != max(queue, e.Admission) || e.Wait == queue == (tokens == 100) {
			t.Errorf("waits %g s, want the longer one of %g for prefills and %g for a slot", e.Wait, queue, e.Admission)
		}
	}
}

// TestReportedMemoryGoesBeforeWhatIsConfigured has an operator say too little of a
// replica that reports how much it has.
func TestReportedMemoryGoesBeforeWhatIsConfigured(t *testing.T) {
	for _, reported := range []float64{math.NaN(), 100_000} {
		f, replicas := newTestFleet(), addresses(1)
		report := silent()
		report.CapacityTokens = reported
		f.Report(at(0), replicas[0], report)
		for i := range uint64(4) {
			request := chat(i, 20_000)
			request.Capacity = 25_000
			f.Place(at(0), request, replicas)
		}
		e := f.Explain(at(time.Hour), chat(10, 1000), replicas)[0]
		if full := e.Admission > 0; full != math.IsNaN(reported) {
			t.Errorf("%g s until there is room where %g tokens are reported", e.Admission, reported)
		}
	}
}

// TestAnswersTakeMemory counts half of what each answer is expected to have,
// whatever the request that is priced asks for.
func TestAnswersTakeMemory(t *testing.T) {
	for _, most := range []int{0, 1} {
		f, replicas := newTestFleet(), addresses(1)
		for i := range uint64(10) {
			request := chat(i, 9000)
			request.Capacity, request.Output = 100_000, 200
			f.Place(at(0), request, replicas).FirstToken(at(time.Second))
		}
		priced := chat(100, 11_000)
		priced.Capacity, priced.Output = 100_000, most
		e := f.Explain(at(time.Hour), priced, replicas)[0]
		if want := e.Decode * (102_000.0/100_000 - 1); !(math.Abs(e.Admission-want) <= 1e-9) {
			t.Errorf("%g s until there is room, want %g", e.Admission, want)
		}
	}
}
