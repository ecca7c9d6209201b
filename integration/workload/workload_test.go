package workload

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

func agents() Agents {
	return Agents{
		Users: 4, Sessions: 40, Kinds: 3, ToolCount: 5, ToolTokens: 60, SystemTokens: 100,
		MinTurns: 2, MaxTurns: 4, AddedTokens: 40, AnswerTokens: 10, Think: time.Millisecond,
		LongEvery: 10, LongTokens: 1000,
	}
}

func TestAgentsFollowTheirParameters(t *testing.T) {
	w := agents().Workload(1)
	kinds, long := map[uint64]int{}, 0
	for i, s := range w.Sessions {
		if s.Shared == nil {
			long++
			if n := s.Turns[0].Added[0].Tokens; len(s.Turns) != 1 || n < 500 || n > 1500 || i%10 != 9 {
				t.Errorf("session %d is a long prompt of %d turns and %d tokens", i, len(s.Turns), n)
			}
			continue
		}
		kinds[s.Shared[0].ID]++
		if n := len(s.Turns); n < 2 || n > 4 {
			t.Errorf("session %d has %d turns, want 2 to 4", i, n)
		}
		if s.Shared[0].Tokens < 5*60 || s.Shared[1].Tokens != 100 {
			t.Errorf("session %d shares %+v", i, s.Shared)
		}
	}
	if len(w.Sessions) != 40 || long != 4 || len(kinds) != 3 {
		t.Errorf("%d sessions, %d long prompts, kinds %v", len(w.Sessions), long, kinds)
	}
}

func TestAgentsFollowTheirSeed(t *testing.T) {
	one, again, other := agents().Workload(1), agents().Workload(1), agents().Workload(2)
	if !reflect.DeepEqual(one, again) {
		t.Error("the same seed gives another workload")
	}
	if reflect.DeepEqual(one.Sessions, other.Sessions) {
		t.Error("another seed gives the same workload")
	}
}

func TestDialogueIsAGrowingChat(t *testing.T) {
	w := agents().Workload(1)
	d := NewDialogue(&w.Sessions[0], "m")
	var before chatBody
	for turn := 0; ; turn++ {
		raw := d.Next()
		if raw == nil {
			if turn != len(w.Sessions[0].Turns) {
				t.Errorf("%d bodies, want %d", turn, len(w.Sessions[0].Turns))
			}
			return
		}
		var body chatBody
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(body.Messages[:len(before.Messages)], before.Messages) || len(body.Tools) == 0 {
			t.Errorf("turn %d does not continue the one before", turn)
		}
		if body.Model != "m" || !body.Stream || !body.StreamOptions.IncludeUsage || body.MaxTokens != w.Sessions[0].Turns[turn].Answer.Tokens {
			t.Errorf("turn %d: options of %.80s", turn, raw)
		}
		before = body
		d.Answer("yes")
	}
}

// TestTranscriptAgreesWithDialogue serves the same sessions, several at once by
// turns, over HTTP and in virtual time: prompts and hits have the same lengths.
func TestTranscriptAgreesWithDialogue(t *testing.T) {
	profile := engine.H100x8B
	profile.Blocks = 120 // small enough to evict
	server, err := engine.Start(engine.Options{Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Slow(0.05)
	virtual := engine.New(profile)
	var now time.Duration
	w := agents().Workload(3)
	hits := 0
	for group := range slices.Chunk(w.Sessions[:12], 4) {
		var dialogues []*Dialogue
		var transcripts []*Transcript
		for i := range group {
			dialogues = append(dialogues, NewDialogue(&group[i], ""))
			transcripts = append(transcripts, NewTranscript(&group[i], profile.BlockSize))
		}
		for range 4 {
			for i, d := range dialogues {
				r := transcripts[i].Next()
				if r == nil {
					continue
				}
				prompt, cached := ask(t, server, d)
				now += time.Second
				if err := virtual.Submit(now, r); err != nil {
					t.Fatal(err)
				}
				for at := virtual.NextEvent(); at != engine.Never; at = virtual.NextEvent() {
					virtual.Advance(at)
					now = at
				}
				if prompt != r.Prompt || cached != r.Cached {
					t.Fatalf("HTTP: %d of %d tokens cached, virtual: %d of %d", cached, prompt, r.Cached, r.Prompt)
				}
				hits += cached
			}
		}
	}
	if hits == 0 {
		t.Error("no hits at all")
	}
}

// ask sends the dialogue's next body unstreamed and returns the usage.
func ask(t *testing.T, server *engine.Server, d *Dialogue) (prompt, cached int) {
	t.Helper()
	d.body.Stream, d.body.StreamOptions = false, nil
	response, err := http.Post(server.URL()+"/v1/chat/completions", "application/json", bytes.NewReader(d.Next()))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Choices []struct{ Message chatMessage }
		Usage   struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Choices) == 0 {
		t.Fatalf("answer %s: %v", raw, err)
	}
	d.Answer(answer.Choices[0].Message.Content)
	return answer.Usage.Prompt, answer.Usage.Details.Cached
}
