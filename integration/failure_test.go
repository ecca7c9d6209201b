package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// distinct makes requests whose prompts have nothing in common.
func distinct(first, n, tokens int) []chat {
	chats := make([]chat, n)
	for i := range chats {
		chats[i] = chat{System: text(first+i, tokens), User: "x", MaxTokens: 2}
	}
	return chats
}

// sendEach sends requests one after the other.
func (r *rig) sendEach(chats []chat) []answer {
	answers := make([]answer, len(chats))
	for i, c := range chats {
		answers[i] = r.send(r.t.Context(), c)
	}
	return answers
}

func TestFailingReplicaGetsLessThanItsShareAndRecovers(t *testing.T) {
	const requests = 40
	for name, fault := range map[string]struct{ begin, end func(*engine.Server) error }{
		"404": {failWith(404), failWith(0)},
		"429": {failWith(429), failWith(0)},
		"500": {failWith(500), failWith(0)},
		"refuses connections": {
			func(e *engine.Server) error { e.Crash(); return nil },
			(*engine.Server).Restart,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 4, engine.Options{}, "", "")
			broken := r.engines[0]
			if err := fault.begin(broken); err != nil {
				t.Fatal(err)
			}
			if n := share(r.sendEach(distinct(0, requests, 200)))[broken.Addr()]; n >= requests/4 {
				t.Errorf("the failing replica got %d of %d requests", n, requests)
			}
			if err := fault.end(broken); err != nil {
				t.Fatal(err)
			}
			// It recovers as its failures fade; more work on the others makes that sooner.
			for wave := range 100 {
				if n := share(r.sendAll(distinct(1000+wave*32, 32, 2000)))[broken.Addr()]; n >= 4 {
					return
				}
			}
			t.Error("the replica gets no requests after its recovery")
		})
	}
}

func failWith(status int) func(*engine.Server) error {
	return func(e *engine.Server) error { e.Fail(status); return nil }
}

// traffic sends conversations from several clients until stopped, and keeps
// the answers.
type traffic struct {
	stop    chan struct{}
	once    sync.Once
	group   sync.WaitGroup
	mu      sync.Mutex
	answers []answer
}

func (r *rig) startTraffic(clients, tokens int) *traffic {
	tr := &traffic{stop: make(chan struct{})}
	r.t.Cleanup(func() { tr.end() })
	for client := range clients {
		tr.group.Go(func() {
			for turn := 0; ; turn++ {
				select {
				case <-tr.stop:
					return
				default:
				}
				a := r.send(context.Background(), chat{System: text(client%5, tokens), User: fmt.Sprint(client, turn), MaxTokens: 20, Silent: client%4 == 3})
				tr.mu.Lock()
				tr.answers = append(tr.answers, a)
				tr.mu.Unlock()
			}
		})
	}
	return tr
}

// awaitMore waits until so many more answers have come.
func (tr *traffic) awaitMore(t *testing.T, n int) {
	t.Helper()
	enough := tr.count() + n
	await(t, fmt.Sprintf("%d answers", enough), func() bool { return tr.count() >= enough })
}

func (tr *traffic) count() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.answers)
}

func (tr *traffic) end() []answer {
	tr.once.Do(func() { close(tr.stop) })
	tr.group.Wait()
	return tr.answers
}

func TestReplicaKilledInTheMiddleOfTraffic(t *testing.T) {
	r := newRig(t, 4, engine.Options{}, "", retries)
	victim := r.engines[1]
	tr := r.startTraffic(12, 2000)
	tr.awaitMore(t, 40)
	await(t, "the victim is at work", func() bool { return victim.Stats().Running > 0 })
	victim.Crash()
	await(t, "the lost replica is doubted", func() bool { return r.status()[victim.Addr()].Doubted })
	tr.awaitMore(t, 40)
	answers := tr.end()
	broken := 0
	for _, a := range answers {
		if a.Status == 200 && a.Complete {
			continue
		}
		broken++
		if !a.Begun && a.Status != 200 {
			t.Errorf("a client saw an error before the answer had begun: %+v", a)
		}
	}
	t.Logf("%d answers, %d broken off", len(answers), broken)
	r.awaitEmptyLedgers()
	if err := victim.Restart(); err != nil {
		t.Fatal(err)
	}
	r.assertColdReplicaIsNotBelieved(victim)
}

// assertColdReplicaIsNotBelieved leaves the replica that lost its cache as the
// only one, and sends the prompts of the traffic.
func (r *rig) assertColdReplicaIsNotBelieved(victim *engine.Server) {
	r.t.Helper()
	r.engines = []*engine.Server{victim}
	r.load()
	for i := range 5 {
		a := r.send(r.t.Context(), chat{System: text(i, 2000), User: "again", MaxTokens: 2})
		if a.Status != 200 || a.Replica != victim.Addr() {
			r.t.Errorf("answer: %+v, want it from %s", a, victim.Addr())
		}
		if a.Matched > a.Cached+600 {
			r.t.Errorf("%d tokens were expected of a cold replica, it had %d", a.Matched, a.Cached)
		}
	}
}

func TestLedgerIsExactAfterClientsLeave(t *testing.T) {
	r := newRig(t, 2, engine.Options{}, "", retries)
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(5+i*7)*time.Millisecond)
			defer cancel()
			r.send(ctx, chat{System: text(i%3, 3000), User: fmt.Sprint(i), MaxTokens: 200, Silent: i%2 == 0})
		})
	}
	group.Wait()
	r.awaitEmptyLedgers()
}

func TestLedgerIsExactAfterTimeouts(t *testing.T) {
	r := newRig(t, 2, engine.Options{}, "", retries+"transport http {\nresponse_header_timeout 60ms\n}\n")
	for _, e := range r.engines {
		e.Slow(1000)
	}
	for _, a := range r.sendAll([]chat{
		{System: text(1, 8000), User: "slow", MaxTokens: 100, Silent: true},
		{System: text(2, 8000), User: "slow", MaxTokens: 100, Silent: true},
	}) {
		if a.Status != 504 && a.Status != 502 {
			t.Errorf("answer: %+v", a)
		}
	}
	r.awaitEmptyLedgers()
}

func TestReloadInTheMiddleOfTraffic(t *testing.T) {
	r := newRig(t, 3, engine.Options{}, "", retries)
	warm := chat{System: text(1, 2000), User: "x", MaxTokens: 4}
	holder := r.send(t.Context(), warm).Replica
	tr := r.startTraffic(8, 1500)
	for i := range 4 {
		tr.awaitMore(t, 8)
		r.options = fmt.Sprintf("cache_capacity %d", 100_000+i)
		r.load()
	}
	for _, a := range tr.end() {
		if a.Status != 200 || !a.Complete {
			t.Errorf("answer: %+v", a)
		}
	}
	r.awaitEmptyLedgers()
	r.engines = slices.DeleteFunc(r.engines, func(e *engine.Server) bool { return e.Addr() != holder })
	r.load()
	if a := r.send(t.Context(), warm); a.Matched < 1000 || a.Cached < 1500 {
		t.Errorf("after the reloads %d tokens were expected and %d found", a.Matched, a.Cached)
	}
}
