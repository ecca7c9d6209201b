package selection

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newTestFleet() *Fleet { return NewFleet(NewMapStore(), 1) }

func addresses(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.0.0.%d:8000", i+1)
	}
	return names
}

// chat is a request with a prompt of the given length; requests with the same
// seed share it.
func chat(seed uint64, tokens int) *Request {
	const blockTokens = 128
	request := &Request{Model: "m", Tokens: tokens, Streamed: true}
	for end := 0; end < tokens; {
		end = min(end+blockTokens, tokens)
		request.Blocks = append(request.Blocks, Block{Key: seed<<32 + uint64(end), Tokens: uint32(end)})
	}
	return request
}

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
}

func assertLedgersEmpty(t tester, f *Fleet) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for address, r := range f.replicas {
		if l := r.ledger; l.first != nil || l.last != nil || l.prefill != 0 || l.queued != 0 || l.running != 0 || l.context != 0 || l.decoding != 0 || l.unindexed != 0 || l.answers != 0 {
			t.Errorf("ledger of %s is not empty: %+v", address, l)
		}
	}
}

func count(bookings []*Booking) map[string]int {
	counts := make(map[string]int)
	for _, b := range bookings {
		counts[b.Estimate.Replica]++
	}
	return counts
}

func TestBurstOfOnePromptSpreads(t *testing.T) {
	for _, tokens := range []int{500, 8_000, 40_000} {
		t.Run(fmt.Sprint(tokens), func(t *testing.T) {
			f := newTestFleet()
			var bookings []*Booking
			for range 64 {
				bookings = append(bookings, f.Place(at(0), chat(1, tokens), addresses(4)))
			}
			for replica, n := range count(bookings) {
				if n > 32 {
					t.Errorf("%s got %d of 64", replica, n)
				}
			}
			for _, b := range bookings {
				b.FirstToken(at(time.Minute))
				b.End(at(time.Minute), Usage{Output: 100})
			}
			assertLedgersEmpty(t, f)
		})
	}
}

func TestWarmReplicaIsChosenUntilItsQueueCostsMore(t *testing.T) {
	f := newTestFleet()
	first := f.Place(at(0), chat(1, 8000), addresses(4))
	if first.Reason != ReasonCold {
		t.Errorf("first reason = %s, want %s", first.Reason, ReasonCold)
	}
	first.FirstToken(at(time.Second))
	first.End(at(2*time.Second), Usage{Output: 100})

	warm := first.Estimate.Replica
	second := f.Place(at(10*time.Second), chat(1, 8000), addresses(4))
	if second.Estimate.Replica != warm || second.Reason != ReasonPrefix {
		t.Errorf("chosen %s for %s, want %s for %s", second.Estimate.Replica, second.Reason, warm, ReasonPrefix)
	}
	second.End(at(11*time.Second), Usage{})

	// Work queued at the warm replica outweighs the prefix.
	for range 4 {
		f.Place(at(20*time.Second), chat(rand.Uint64N(1<<30)+2, 60_000), []string{warm})
	}
	third := f.Place(at(20*time.Second), chat(1, 8000), addresses(4))
	if third.Estimate.Replica == warm || third.Reason != ReasonSpread {
		t.Errorf("chosen %s for %s, want another than %s for %s", third.Estimate.Replica, third.Reason, warm, ReasonSpread)
	}
}

func TestReplicaThatFailsFastIsNotCheap(t *testing.T) {
	f := newTestFleet()
	broken := addresses(4)[0]
	share := 0
	const requests = 400
	for i := range requests {
		now := at(time.Duration(i) * 100 * time.Millisecond)
		b := f.Place(now, chat(uint64(i+1), 1000), addresses(4))
		if b.Estimate.Replica == broken {
			share++
			b.Fail(now.Add(time.Millisecond), FailureModel)
		} else {
			b.FirstToken(now.Add(40 * time.Millisecond))
			b.End(now.Add(90*time.Millisecond), Usage{Output: 10})
		}
	}
	if share > requests/20 {
		t.Errorf("the failing replica got %d of %d requests", share, requests)
	}
	recovered := 0
	for i := range requests {
		now := at(time.Minute + time.Duration(i)*100*time.Millisecond)
		b := f.Place(now, chat(uint64(i+10_000), 1000), addresses(4))
		if b.Estimate.Replica == broken {
			recovered++
		}
		b.FirstToken(now.Add(40 * time.Millisecond))
		b.End(now.Add(90*time.Millisecond), Usage{Output: 10})
	}
	if recovered < requests/8 {
		t.Errorf("after its recovery the replica got %d of %d requests", recovered, requests)
	}
	assertLedgersEmpty(t, f)
}

func TestRetryAvoidsTheReplicaThatFailed(t *testing.T) {
	f := newTestFleet()
	request := chat(1, 8000)
	warm := f.Place(at(0), request, addresses(2))
	warm.End(at(time.Second), Usage{})

	request.Avoid = []string{warm.Estimate.Replica}
	if b := f.Place(at(2*time.Second), request, addresses(2)); b.Estimate.Replica == warm.Estimate.Replica {
		t.Error("the replica to avoid was chosen")
	}
	if b := f.Place(at(3*time.Second), request, request.Avoid); b.Estimate.Replica != warm.Estimate.Replica {
		t.Error("the only replica was not chosen")
	}
}

func TestFailedAttemptLeavesNoResidency(t *testing.T) {
	f := newTestFleet()
	b := f.Place(at(0), chat(1, 8000), addresses(1))
	b.Fail(at(time.Second), FailureRequest)
	if e := f.Explain(at(time.Second), chat(1, 8000), addresses(1)); e[0].Matched != 0 {
		t.Errorf("%d tokens are believed resident after a failed attempt", e[0].Matched)
	}
}

func TestLostReplicaIsDistrustedUntilAHitIsConfirmed(t *testing.T) {
	matched := func(f *Fleet, seed uint64) int {
		return f.Explain(at(time.Minute), chat(seed, 8000), addresses(1))[0].Matched
	}
	// warm returns a fleet of one replica that holds two prompts and has then been lost.
	warm := func() *Fleet {
		f := newTestFleet()
		for seed := range uint64(2) {
			b := f.Place(at(0), chat(seed+1, 8000), addresses(1))
			b.FirstToken(at(time.Second))
			b.End(at(time.Second), Usage{})
		}
		f.Place(at(2*time.Second), chat(9, 100), addresses(1)).Fail(at(3*time.Second), FailureReplica)
		return f
	}
	answer := func(f *Fleet, cached int) {
		b := f.Place(at(time.Minute), chat(1, 8000), addresses(1))
		b.FirstToken(at(time.Minute))
		b.End(at(time.Minute), Usage{Cached: cached, Checked: true})
	}

	f := warm()
	if got := matched(f, 2); got > 1000 {
		t.Errorf("%d tokens are expected of a replica that was lost", got)
	}
	answer(f, 7900)
	if got := matched(f, 2); got < 7000 {
		t.Errorf("%d tokens are expected after a hit was confirmed, want nearly all 8000", got)
	}

	f = warm()
	answer(f, 0)
	if got := matched(f, 2); got != 0 {
		t.Errorf("%d tokens are expected after a miss was reported, want 0", got)
	}
	if got := matched(f, 1); got < 7000 {
		t.Errorf("%d tokens are expected of the prompt just computed, want nearly all 8000", got)
	}
}

func TestRequestsWithoutAPromptGoToTheLeastWork(t *testing.T) {
	f := newTestFleet()
	busy := addresses(2)[0]
	f.Place(at(0), chat(1, 20_000), []string{busy})
	for range 3 {
		b := f.Place(at(0), &Request{Work: Light}, addresses(2))
		if b.Estimate.Replica == busy || b.Reason != ReasonLoad {
			t.Errorf("chosen %s for %s", b.Estimate.Replica, b.Reason)
		}
	}
}

func TestSameSeedSameChoices(t *testing.T) {
	run := func() (choices []string) {
		f := NewFleet(NewMapStore(), 7)
		for i := range 200 {
			now := at(time.Duration(i) * 10 * time.Millisecond)
			b := f.Place(now, chat(uint64(i%17), 500+i*10), addresses(8))
			choices = append(choices, b.Estimate.Replica)
			if i%3 == 0 {
				b.End(now.Add(5*time.Millisecond), Usage{Output: i})
			}
		}
		return choices
	}
	first, second := run(), run()
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("choice %d differs: %s, %s", i, first[i], second[i])
		}
	}
}

func TestLedgersReturnToZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newTestFleet()
		var open []*Booking
		now := at(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 500).Draw(t, "ms")) * time.Millisecond)
			if len(open) == 0 || rapid.Bool().Draw(t, "place") {
				request := chat(rapid.Uint64Range(1, 4).Draw(t, "prompt"), rapid.IntRange(0, 5000).Draw(t, "tokens"))
				request.Streamed = rapid.Bool().Draw(t, "streamed")
				request.Work = Work(rapid.IntRange(0, 2).Draw(t, "work"))
				open = append(open, f.Place(now, request, addresses(3)))
				continue
			}
			b := open[rapid.IntRange(0, len(open)-1).Draw(t, "booking")]
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				b.FirstToken(now)
			case 1:
				b.End(now, Usage{Output: 5})
			case 2:
				b.Cancel(now, Usage{})
			case 3:
				b.Fail(now, Failure(rapid.IntRange(0, 2).Draw(t, "failure")))
			}
		}
		for _, b := range open {
			b.Cancel(now, Usage{})
		}
		assertLedgersEmpty(t, f)
	})
}

// TestNewcomerIsUsedNotStampeded lets a replica with an empty cache join busy
// ones that hold all prompts: it gets work, and not all of it.
func TestNewcomerIsUsedNotStampeded(t *testing.T) {
	f := newTestFleet()
	all := addresses(4)
	w := newVirtual(f, all[:3])
	usage := Usage{Output: 100, Checked: true}
	for i := range 600 {
		w.serve(chat(uint64(i%40), 6000), usage)
	}
	w.replicas = all
	w.slow[all[3]], w.caches[all[3]] = 1, newLRU(1<<30)
	early, late := 0, 0
	for i := range 400 {
		if w.serve(chat(uint64(i%60), 6000), usage).Estimate.Replica == all[3] {
			if i < 40 {
				early++
			} else if i >= 200 {
				late++
			}
		}
	}
	if early > 30 {
		t.Errorf("the newcomer got %d of the first 40 requests", early)
	}
	if late < 10 {
		t.Errorf("the newcomer got %d of 200 requests later", late)
	}
}

// TestIdlenessIsNoAbsence lets newcomers come first in the list after a long
// time without requests: the second one must not take the place of those behind.
func TestIdlenessIsNoAbsence(t *testing.T) {
	f := newTestFleet()
	old := addresses(3)
	b := f.Place(at(0), chat(1, 4000), old)
	b.FirstToken(at(time.Second))
	b.End(at(2*time.Second), Usage{Output: 10})
	later := at(24 * time.Hour)
	again := f.Place(later, chat(1, 4000), append([]string{"10.0.1.1:8000", "10.0.1.2:8000"}, old...))
	if again.Estimate.Replica != b.Estimate.Replica || again.Estimate.Matched < 3900 {
		t.Errorf("after a quiet day the prompt went to %+v, want %s", again.Estimate, b.Estimate.Replica)
	}
}
