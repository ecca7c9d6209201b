package engine

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

func TestCrashDropsConnectionsAndComesBackCold(t *testing.T) {
	s := start(t, Options{})
	warm := map[string]any{"messages": []turn{user(Text(1, 100))}, "max_tokens": 1}
	ask(t, s, "/v1/chat/completions", warm)
	addr := s.Addr()

	s.Slow(1)
	raw, _ := json.Marshal(map[string]any{"messages": []turn{user("hello")}, "max_tokens": 100_000, "stream": true})
	response, err := http.Post(s.URL()+"/v1/chat/completions", "application/json", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.Crash()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the stream ends as if it were complete")
	}
	if _, err := http.Get("http://" + addr + "/health"); err == nil {
		t.Error("a crashed engine answers")
	}
	if s.Stats() != (Stats{}) {
		t.Errorf("stats of a crashed engine: %+v", s.Stats())
	}

	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Errorf("back at %s, want %s", s.Addr(), addr)
	}
	if _, c := ask(t, s, "/v1/chat/completions", warm); c.Usage.Details.CachedTokens != 0 {
		t.Errorf("cached = %d after a crash", c.Usage.Details.CachedTokens)
	}
	if err := s.Restart(); err == nil {
		t.Error("a running engine starts again")
	}
}

func TestCloseAndCrashMayBeRepeated(t *testing.T) {
	s := start(t, Options{})
	s.Crash()
	s.Crash()
	s.ClearCache()
	s.Slow(2)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestManyClients runs conversations side by side while an operator interferes.
func TestManyClients(t *testing.T) {
	profile := H100x8B
	profile.Blocks = 400
	s := start(t, Options{Profile: profile, StreamInterval: 4})
	var clients sync.WaitGroup
	for i := range 12 {
		clients.Go(func() {
			turns := []turn{{"system", Text(uint64(i%3), 300)}}
			for j := range 4 {
				turns = append(turns, user(Text(uint64(100*i+j), 40)))
				_, c := ask(t, s, "/v1/chat/completions", map[string]any{"messages": turns, "max_tokens": 30})
				turns = append(turns, turn{"assistant", c.Choices[0].Message.Content})
			}
		})
	}
	stop := make(chan struct{})
	var operator sync.WaitGroup
	operator.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				s.ClearCache()
				s.Stats()
				get(t, s.URL()+"/metrics")
			}
		}
	})
	clients.Wait()
	close(stop)
	operator.Wait()
	if st := s.Stats(); st.Requests != 48 || st.UsedTokens != 0 || st.GeneratedTokens != 48*30 {
		t.Errorf("stats %+v", st)
	}
}

// TestVirtualTimeAgreesWithHTTP serves the same conversations through both faces.
func TestVirtualTimeAgreesWithHTTP(t *testing.T) {
	profile := H100x8B
	profile.Blocks = 60 // small enough to evict
	s := start(t, Options{Profile: profile})
	virtual := New(profile)
	hits := 0
	conversations := make([][]turn, 3)
	for step := range 12 {
		c := &conversations[step%3]
		if *c == nil {
			*c = []turn{{"system", Text(uint64(step%2), 150)}}
		}
		*c = append(*c, user(Text(uint64(1000+step), 25)))
		_, got := ask(t, s, "/v1/chat/completions", map[string]any{"messages": *c, "max_tokens": 20})
		reply := got.Choices[0].Message.Content
		*c = append(*c, turn{"assistant", reply})

		sequence := NewChain(mix(0)^tokenOf(""), profile.BlockSize)
		for _, m := range (*c)[:len(*c)-1] {
			sequence.Add(RoleToken(m.Role))
			sequence.AddText(m.Content)
			sequence.Add(endOfTurn)
		}
		sequence.Add(RoleToken("assistant"))
		r := &Request{Prompt: sequence.Len(), Output: 20}
		sequence.AddText(reply)
		r.Keys = sequence.Keys()
		serve(t, virtual, r)
		if got.Usage.Details.CachedTokens != r.Cached || got.Usage.PromptTokens != r.Prompt {
			t.Errorf("step %d: HTTP %d of %d cached, virtual %d of %d", step,
				got.Usage.Details.CachedTokens, got.Usage.PromptTokens, r.Cached, r.Prompt)
		}
		hits += r.Cached
	}
	if hits == 0 {
		t.Error("no hits at all")
	}
}
