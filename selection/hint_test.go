package selection

import (
	"testing"
	"time"
)

// serve sends a request through its whole life and returns where it went and why.
func serve(f *Fleet, request *Request, replicas int) (string, Reason) {
	b := f.Place(at(0), request, addresses(replicas))
	b.FirstToken(at(time.Second))
	b.End(at(time.Second), Usage{Output: 10})
	return b.Estimate.Replica, b.Reason
}

func withHints(request *Request, hints ...uint64) *Request {
	request.Hints = hints
	return request
}

// bare is a request of which nothing is known but its hints.
func bare(hints ...uint64) *Request { return &Request{Hints: hints} }

func TestHintFindsWhereItsSessionWent(t *testing.T) {
	f := newTestFleet()
	homes := make(map[uint64]string)
	for hint := range uint64(16) {
		if hint%2 == 0 {
			homes[hint], _ = serve(f, withHints(chat(hint, 2000), hint), 4)
		} else {
			homes[hint], _ = serve(f, bare(hint), 4)
		}
	}
	for round := range 3 {
		for hint, home := range homes {
			if got, reason := serve(f, bare(hint), 4); got != home || reason != ReasonHint {
				t.Errorf("round %d: hint %d went to %s for %s, want %s", round, hint, got, reason, home)
			}
		}
	}
	if _, reason := serve(f, bare(99), 4); reason != ReasonLoad {
		t.Errorf("an unknown hint chose for %s", reason)
	}
	assertLedgersEmpty(t, f)
}

func TestFirstKnownHintCounts(t *testing.T) {
	f := newTestFleet()
	session := f.Place(at(0), withHints(chat(1, 2000), 1), addresses(2)[:1])
	session.End(at(0), Usage{})
	user := f.Place(at(0), withHints(chat(2, 2000), 2), addresses(2)[1:])
	user.End(at(0), Usage{})
	for name, test := range map[string]struct {
		hints []uint64
		want  string
	}{
		"both":          {[]uint64{1, 2}, addresses(2)[0]},
		"other way":     {[]uint64{2, 1}, addresses(2)[1]},
		"unknown first": {[]uint64{9, 2}, addresses(2)[1]},
	} {
		e := f.Explain(at(0), bare(test.hints...), addresses(2))
		for i := range e {
			if warm := e[i].Matched > 0; warm != (e[i].Replica == test.want) {
				t.Errorf("%s: %s is expected to hold %d tokens", name, e[i].Replica, e[i].Matched)
			}
		}
	}
}

func TestTextCountsMoreThanHints(t *testing.T) {
	f := newTestFleet()
	f.Place(at(0), withHints(chat(1, 4000), 7), addresses(2)[:1]).End(at(0), Usage{})
	f.Place(at(0), chat(2, 4000), addresses(2)[1:]).End(at(0), Usage{})
	if got, reason := serve(f, withHints(chat(2, 4000), 7), 2); got != addresses(2)[1] || reason != ReasonPrefix {
		t.Errorf("went to %s for %s", got, reason)
	}
}

func TestHintsAreUndoneWithTheirAttempt(t *testing.T) {
	f := newTestFleet()
	request := withHints(chat(1, 2000), 5)
	f.Place(at(0), request, addresses(1)).Fail(at(0), FailureModel)
	if f.Recognises(bare(5)) {
		t.Error("the hint of a failed attempt is recognised")
	}
	f.Place(at(0), request, addresses(1)).Cancel(at(0), Usage{})
	if f.Recognises(bare(5)) {
		t.Error("the hint of an attempt that never began is recognised")
	}
	serve(f, request, 1)
	if !f.Recognises(bare(5)) {
		t.Error("the hint is not recognised")
	}
	f.Place(at(0), withHints(bare(6), 6), addresses(1)).Fail(at(0), FailureReplica)
	f.residency.Forget(0)
	if f.Recognises(bare(5)) {
		t.Error("the hint outlives the replica's cache")
	}
}

func TestLightRequestsLeaveHintsAlone(t *testing.T) {
	f := newTestFleet()
	serve(f, &Request{Work: Light, Hints: []uint64{3}}, 2)
	if f.Recognises(bare(3)) {
		t.Error("a light request has left a hint")
	}
	serve(f, bare(3), 2)
	if f.Recognises(&Request{Work: Light, Hints: []uint64{3}}) {
		t.Error("a light request follows a hint")
	}
}

func TestHintAgesWithTheCache(t *testing.T) {
	f := newTestFleet()
	request := withHints(chat(1, 1000), 5)
	request.Capacity = 10_000
	serve(f, request, 1)
	for seed := range uint64(20) {
		other := chat(seed+10, 1000)
		other.Capacity = 10_000
		serve(f, other, 1)
	}
	if f.Recognises(bare(5)) {
		t.Error("the hint outlives its prompt")
	}
}

func TestBusyReplicaIsNotChosenForAHint(t *testing.T) {
	f := newTestFleet()
	home, _ := serve(f, withHints(chat(1, 1000), 5), 2)
	f.Place(at(0), chat(2, 200_000), []string{home})
	if got, reason := serve(f, bare(5), 2); got == home || reason != ReasonSpread {
		t.Errorf("went to %s for %s, a queue of 200,000 tokens away", got, reason)
	}
}

func TestHintsStayWithinTheMemoryOfTheIndex(t *testing.T) {
	store, err := NewRistrettoStore(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFleet(store, 1)
	defer f.Close()
	for hint := range uint64(100_000) {
		serve(f, bare(mix(hint), mix(hint+1<<40)), 4)
	}
	if s := f.residency.Stats(); s.Bytes > s.Limit || s.Entries == 0 {
		t.Errorf("%d entries take %d of %d bytes", s.Entries, s.Bytes, s.Limit)
	}
	last := uint64(99_999)
	if !f.Recognises(bare(mix(last))) {
		t.Error("the last hint is not recognised")
	}
}
