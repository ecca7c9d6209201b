package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// start starts an engine that the test closes; its steps take a tenth of the time.
func start(t *testing.T, options Options) *Server {
	t.Helper()
	s, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Slow(0.1)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func user(text string) turn { return turn{"user", text} }

// ask sends a body that is not streamed and returns the status and the answer.
func ask(t *testing.T, s *Server, path string, body map[string]any) (int, completion) {
	t.Helper()
	status, raw := post(t, s, path, body)
	var c completion
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatalf("decoding answer %q: %v", raw, err)
	}
	return status, c
}

func post(t *testing.T, s *Server, path string, body map[string]any) (int, []byte) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(s.URL()+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// askStream sends a streamed body and returns the chunks.
func askStream(t *testing.T, s *Server, path string, body map[string]any) (chunks []completion) {
	t.Helper()
	body["stream"] = true
	_, raw := post(t, s, path, body)
	lines := bufio.NewScanner(bytes.NewReader(raw))
	done := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if done = data == "[DONE]"; done {
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("decoding event %q: %v", data, err)
		}
		chunks = append(chunks, c)
	}
	if !done {
		t.Errorf("the stream does not end with [DONE]: %q", raw)
	}
	return chunks
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
