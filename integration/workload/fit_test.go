package workload

import (
	"testing"
	"time"
)

func TestFitEndsSessionsThatGrowTooLong(t *testing.T) {
	turn := func(added, answer int, fresh bool) Turn {
		return Turn{Fresh: fresh, Added: []Segment{{1, User, added}}, Answer: Segment{2, Assistant, answer}}
	}
	growing := Session{
		Shared: []Segment{{3, System, 100}},
		Turns:  []Turn{turn(50, 10, false), turn(50, 10, false), turn(50, 10, false)},
	}
	// 102 shared, then 64 with each turn: 166, 230, 294 tokens.
	for _, c := range []struct{ most, turns int }{{165, 0}, {166, 1}, {229, 1}, {230, 2}, {293, 2}, {294, 3}} {
		if n := len(growing.fitting(c.most)); n != c.turns {
			t.Errorf("%d turns fit into %d tokens, want %d", n, c.most, c.turns)
		}
	}
	w := &Workload{Sessions: []Session{
		growing,
		{Turns: []Turn{{Added: []Segment{{1, Raw, 900}}, Answer: Segment{2, Assistant, 10}}}},
		{Turns: []Turn{turn(100, 10, false), turn(100, 10, true)}},
	}}
	if left := w.Fit(200); left != 3 || len(w.Sessions) != 2 || w.Requests() != 3 {
		t.Errorf("%d left out, %d requests in %d sessions", left, w.Requests(), len(w.Sessions))
	}
	if len(growing.Turns) != 3 {
		t.Error("the session itself was shortened")
	}
}

func TestFitReachesWhatIsSpawned(t *testing.T) {
	child := func(tokens int) Session {
		return Session{Turns: []Turn{{Added: []Segment{{1, User, tokens}}, Answer: Segment{2, Assistant, 10}}}}
	}
	parent := child(100)
	parent.Turns[0].Spawn = []Session{child(100), child(300), child(50)}
	w := &Workload{Sessions: []Session{parent}}
	if n := w.Requests(); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	if left := w.Fit(200); left != 1 || w.Requests() != 3 || len(parent.Turns[0].Spawn) != 3 {
		t.Errorf("%d left out, %d requests remain, the session itself has %d children", left, w.Requests(), len(parent.Turns[0].Spawn))
	}
}

func TestHastenMultipliesTheRate(t *testing.T) {
	w := &Workload{}
	for i := range 11 {
		w.Sessions = append(w.Sessions, Session{Start: time.Duration(i) * time.Second, Turns: make([]Turn, 2)})
	}
	before := w.Rate()
	w.Hasten(4)
	if before != 2.2 || w.Rate() != 4*before || w.End() != 2500*time.Millisecond {
		t.Errorf("rate %v, then %v until %v", before, w.Rate(), w.End())
	}
}
