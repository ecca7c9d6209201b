package engine

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/internal/loopback"
)

// Options say how a simulated engine is started. The zero value is an 8B model
// on one H100 at a free loopback port.
type Options struct {
	// Addr is the address to listen on. Default: a free loopback port.
	Addr string
	// Profile is the replica to simulate. Default: H100x8B.
	Profile Profile
	// Models are the names it serves: a model, then its adapters, whose cached
	// blocks are kept apart. Default: "simulated".
	Models []string
	// HideCachedTokens leaves prompt_tokens_details out of the usage, as vLLM
	// does without --enable-prompt-tokens-details.
	HideCachedTokens bool
	// StreamInterval is how many tokens are put into one event of a stream; the
	// first one always goes out alone. Default: 1.
	StreamInterval int
	// Record keeps every request as it arrived, for Requests.
	Record bool
}

// Server is a simulated engine behind HTTP, in real time. Its methods are safe
// for concurrent use.
type Server struct {
	options Options
	addr    string
	failure atomic.Int64 // status to answer every request with, 0 for none

	mu       sync.Mutex
	requests []RecordedRequest
	life     *life // nil while crashed or closed
	slow     float64
}

// RecordedRequest is a request as it arrived.
type RecordedRequest struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// life is a Server between a start and a crash.
type life struct {
	server      *http.Server
	runner      *runner
	started     time.Time
	serving     chan struct{} // closed when the listener's goroutine has ended
	connections sync.WaitGroup
}

// Start starts a simulated engine; Close must be called in the end.
func Start(options Options) (*Server, error) {
	options.StreamInterval = max(1, options.StreamInterval)
	if options.Profile == (Profile{}) {
		options.Profile = H100x8B
	}
	if len(options.Models) == 0 {
		options.Models = []string{"simulated"}
	}
	s := &Server{options: options, addr: options.Addr, slow: 1}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	return s, nil
}

// Addr is the host and port the engine listens on, the same after a restart.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL is the base URL of the engine.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Close stops the engine and waits for its goroutines.
func (s *Server) Close() error {
	s.Crash()
	return nil
}

// Crash drops all connections and requests and stops listening. It does nothing
// if the engine is down already.
func (s *Server) Crash() {
	s.mu.Lock()
	l := s.life
	s.life = nil
	s.mu.Unlock()
	if l == nil {
		return
	}
	l.runner.stop()
	_ = l.server.Close()
	<-l.serving
	l.connections.Wait()
}

// Restart brings a crashed engine back at the same address, with a cold cache and
// a new start time.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil {
		return errors.New("starting simulated engine: already running")
	}
	listener, err := listen(s.addr)
	if err != nil {
		return fmt.Errorf("starting simulated engine: %w", err)
	}
	s.addr = listener.Addr().String()
	l := &life{runner: startRunner(s.options.Profile), started: time.Now(), serving: make(chan struct{})}
	l.server = &http.Server{Handler: s.handler(l), ConnState: l.count}
	s.life = l
	s.slowDown(l)
	go func() {
		defer close(l.serving)
		_ = l.server.Serve(listener) // ends with ErrServerClosed
	}()
	return nil
}

// count keeps track of open connections, so that Crash can wait for their handlers.
func (l *life) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		l.connections.Add(1)
	case http.StateClosed:
		l.connections.Done()
	}
}

// listen waits a little for an address that a crashed engine has just left. If
// there is none yet, it is one that nobody takes before the engine is back.
func listen(addr string) (net.Listener, error) {
	if addr == "" {
		return loopback.Listen()
	}
	for tries := 0; ; tries++ {
		listener, err := net.Listen("tcp", addr)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || tries == 100 {
			return listener, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Slow multiplies the time of all further steps by factor; 1 is full speed. It
// outlasts a restart.
func (s *Server) Slow(factor float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = factor
	if s.life != nil {
		s.slowDown(s.life)
	}
}

func (s *Server) slowDown(l *life) {
	_ = l.runner.do(func(e *Engine, now time.Duration) error {
		e.Slow(now, s.slow)
		return nil
	})
}

// ClearCache makes the engine forget all cached blocks; running requests go on.
func (s *Server) ClearCache() {
	if l := s.alive(); l != nil {
		_ = l.runner.do(func(e *Engine, now time.Duration) error {
			e.ClearCache(now)
			return nil
		})
	}
}

// Fail makes the engine answer every completion request with that status at
// once; 0 ends it.
func (s *Server) Fail(status int) { s.failure.Store(int64(status)) }

// Stats reports the counters since the last start, zeros while the engine is down.
func (s *Server) Stats() Stats {
	if l := s.alive(); l != nil {
		return l.runner.stats()
	}
	return Stats{}
}

// Requests are the completion requests so far, if Options.Record is set.
func (s *Server) Requests() []RecordedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) alive() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}
