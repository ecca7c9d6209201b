package fleet

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

func subagents(users int) *workload.Workload {
	return workload.Subagents{
		Agents: workload.Agents{
			Users: users, Sessions: 3 * users, Kinds: 2, ToolCount: 9, ToolTokens: 90, SystemTokens: 500,
			MinTurns: 4, MaxTurns: 6, AddedTokens: 700, AnswerTokens: 300, Think: time.Second,
		},
		Share: 0.5, MinCount: 2, MaxCount: 4, MinSteps: 1, MaxSteps: 3,
	}.Workload(1)
}

// arrivals notes when each session's requests came and ended.
type arrivals struct {
	alternate
	first, last map[uint64]time.Duration
	turns       map[*workload.Turn]time.Duration
}

func (a *arrivals) Choose(now time.Duration, r *Request, candidates []int) int {
	if _, ok := a.first[r.Session]; !ok {
		a.first[r.Session] = now
	}
	a.turns[r.Turn] = now
	return a.alternate.Choose(now, r, candidates)
}

func (a *arrivals) End(now time.Duration, r *Request) { a.last[r.Session] = now }

func TestParentsWaitForWhatTheySpawn(t *testing.T) {
	w := subagents(1)
	router := &arrivals{
		first: map[uint64]time.Duration{}, last: map[uint64]time.Duration{}, turns: map[*workload.Turn]time.Duration{},
	}
	result, err := Run(Options{Workload: w, Replicas: replicas(2, engine.H100x8B)}, router)
	if err != nil {
		t.Fatal(err)
	}
	if result.All != w.Requests() {
		t.Fatalf("%d ended, want %d", result.All, w.Requests())
	}
	bursts := 0
	for _, s := range w.Sessions {
		for i := range s.Turns {
			spawned := s.Turns[i].Spawn
			if len(spawned) == 0 {
				continue
			}
			bursts++
			begin, end := router.turns[&spawned[0].Turns[0]], time.Duration(0)
			for k := range spawned {
				if at := router.turns[&spawned[k].Turns[0]]; at != begin {
					t.Errorf("spawned together, but begun at %v and %v", begin, at)
				}
				end = max(end, router.turns[&spawned[k].Turns[len(spawned[k].Turns)-1]])
			}
			if next := router.turns[&s.Turns[i+1]]; next <= end {
				t.Errorf("the parent went on at %v, its sub-agents had requests until %v", next, end)
			}
		}
	}
	if bursts < 3 || len(router.first) < 10 {
		t.Errorf("%d bursts, %d sessions, want several", bursts, len(router.first))
	}
}

func TestSubagentsBeginWithTheParentsConversation(t *testing.T) {
	for _, s := range subagents(4).Sessions {
		parent := newHistory(&s)
		for r := parent.next(16); r != nil; r = parent.next(16) {
			for i := range r.Turn.Spawn {
				child := newHistory(&r.Turn.Spawn[i]).next(16)
				n := len(r.Texts)
				if !reflect.DeepEqual(child.Texts[:n], r.Texts) {
					t.Fatal("a sub-agent's prompt does not begin with its parent's")
				}
				if answer := r.Turn.Answer.Tokens; answer > r.Prompt/tailGrowth+smallTail && !child.Texts[n].Reply {
					t.Fatal("what follows on the parent's prompt is not its answer")
				}
				full := (r.Prompt + r.Turn.Answer.Tokens) / 16
				if !reflect.DeepEqual(child.sequence.Keys[:full], r.sequence.Keys[:full]) {
					t.Fatal("a sub-agent's prompt does not go on with its parent's answer")
				}
			}
		}
	}
}
