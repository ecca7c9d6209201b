package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/internal/measure"
)

// sink is an engine that counts a body's bytes as they arrive, and keeps none.
type sink struct {
	*httptest.Server
	arrived atomic.Int64
}

func startSink(t *testing.T) *sink {
	t.Helper()
	s := new(sink)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 32<<10)
		for {
			n, err := r.Body.Read(piece)
			s.arrived.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// await waits until so many bytes have arrived.
func (s *sink) await(t *testing.T, n int64) {
	t.Helper()
	if !becomes(func() bool { return s.arrived.Load() >= n }) {
		t.Fatalf("%d bytes have arrived, want %d", s.arrived.Load(), n)
	}
}

// Of a body longer than max_prompt, the engine gets what the client has sent
// while the client still sends, and the proxy holds no more than the beginning.
func TestLongBodiesStreamOn(t *testing.T) {
	const piece, pieces, held = 1 << 20, 128, 16 << 20
	for _, sized := range []bool{true, false} {
		t.Run(fmt.Sprint("sized ", sized), func(t *testing.T) {
			s := startSink(t)
			r := &rig{t: t, options: "max_prompt 64KiB", others: []string{s.Listener.Addr().String(), s.Listener.Addr().String()}}
			r.start()
			body, send := io.Pipe()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.address+chatPath, body)
			if err != nil {
				t.Fatal(err)
			}
			if sized {
				request.ContentLength = piece * pieces
			}
			answered := make(chan error, 1)
			measure.Bounded(t, held, func() {
				go func() {
					response, err := client.Do(request)
					if err == nil {
						err = response.Body.Close()
					}
					answered <- err
				}()
				text := []byte(strings.Repeat(" ", piece))
				for i := range pieces {
					if _, err := send.Write(text); err != nil {
						t.Fatal(err)
					}
					// What is still on its way is in the sockets' buffers.
					s.await(t, int64(i-16)*piece)
				}
				_ = send.Close()
				if err := <-answered; err != nil {
					t.Error(err)
				}
			})
			if n := s.arrived.Load(); n != piece*pieces {
				t.Errorf("%d bytes have arrived, want %d", n, piece*pieces)
			}
		})
	}
}
