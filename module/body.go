package module

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// replayBody is the body of one proxied request, read ahead so that it can be
// looked at before a replica is chosen and sent again when a replica fails.
//
// Every byte comes through the proxy's own body (source) exactly once, when
// it is first sent, so that size limits, timeouts, trailers and counters in
// front of it work as without us. Only what has come through already is
// repeated from the copy. Bytes beyond the copy stream through and cannot be
// repeated.
//
// A nil *replayBody stands for a request whose body is left alone.
type replayBody struct {
	source   io.ReadCloser
	copy     *bodyCopy
	complete bool

	broken   atomic.Pointer[error]        // what reading from the client failed with
	current  atomic.Pointer[replayReader] // the only reader that may still read
	streamer atomic.Pointer[replayReader] // the reader that went beyond the copy

	mu     sync.Mutex // one reader at a time takes from source
	passed int        // bytes of the copy that have come through source
	end    error      // what source ended with, at the end of the copy or before
}

// openBody reads the beginning of r's body, at most limit bytes, and replaces
// the body by one that starts with them again. Called for a further attempt
// with the same request it rewinds. It returns nil, and reads nothing, where
// there is no body or reading ahead would hold up what the client expects to
// pass at once (upgrades, incremental requests).
//
// A read error does not surface here: it follows the data when the body is
// sent, and the observed transport does not send what is broken already.
func openBody(r *http.Request, limit int64, budget *bodyBudget) *replayBody {
	if reader, ok := r.Body.(*replayReader); ok {
		reader.body.rewind(r)
		return reader.body
	}
	if !mayReadAhead(r) || limit <= 0 {
		return nil
	}
	b := &replayBody{source: r.Body, copy: newBodyCopy(budget, limit, r.ContentLength)}
	b.readAhead(r)
	b.rewind(r)
	b.copy.endWith(r.Context())
	return b
}

// mayReadAhead tells whether r has a body that can be read before it is sent.
func mayReadAhead(r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return false
	}
	return r.Header["Upgrade"] == nil && !caddyhttp.IsIncremental(r.Header)
}

// readAhead fills the copy, preferably by peeking below everything that
// counts the body's bytes, else from source itself.
func (b *replayBody) readAhead(r *http.Request) {
	var end error
	peeked, first := peekBody(r, b.copy)
	if peeked != nil {
		end = b.copy.fill(peeked.ahead())
		peeked.serve()
	} else {
		end = first
		if end == nil {
			end = b.copy.fill(b.source)
		}
		b.passed, b.end = b.copy.size, end
	}
	b.complete = end == io.EOF || end == nil && int64(b.copy.size) == r.ContentLength
	b.note(end)
}

// Prefix returns the beginning of the body, read only, and nil once it has
// been released. It may be used until Select returns and no longer.
func (b *replayBody) Prefix() []byte {
	if b == nil {
		return nil
	}
	return b.copy.bytes()
}

// Complete tells whether Prefix is the whole body.
func (b *replayBody) Complete() bool {
	return b == nil || b.complete
}

// note remembers an error with which reading from the client failed.
func (b *replayBody) note(err error) {
	if err != nil && err != io.EOF {
		b.broken.CompareAndSwap(nil, &err)
	}
}

// refusal returns why the body must not be sent, nil if it may. It tells what
// the client's leaving cut off from what is broken otherwise.
func (b *replayBody) refusal(ctx context.Context) error {
	broken := b.broken.Load()
	switch {
	case broken == nil:
		return nil
	case ctx.Err() == nil || errors.Is(*broken, os.ErrDeadlineExceeded):
		return *broken
	}
	return ctx.Err()
}

// release gives the copy up: no further attempt will need it. Its memory is
// reused as soon as nobody reads from it any more. Safe to call at any time,
// from any goroutine, more than once.
func (b *replayBody) release() {
	if b != nil {
		b.copy.release()
	}
}

// rewind makes r's body start at its beginning once more.
func (b *replayBody) rewind(r *http.Request) {
	r.Body = b.open()
	if b.complete {
		r.GetBody = func() (io.ReadCloser, error) { return b.open(), nil }
	}
}

// open returns a new reader at the body's beginning and shuts the one before.
func (b *replayBody) open() *replayReader {
	b.copy.join()
	reader := &replayReader{body: b}
	if before := b.current.Swap(reader); before != nil {
		before.leave()
	}
	return reader
}

// replayReader is the body of one attempt.
type replayReader struct {
	body   *replayBody
	offset int
	closed atomic.Bool
}

// Read returns http.ErrBodyReadAfterClose where bytes are missing that an
// earlier attempt has used up, as the proxy's own body does.
func (r *replayReader) Read(p []byte) (int, error) {
	b := r.body
	if r.closed.Load() || b.current.Load() != r {
		return 0, http.ErrBodyReadAfterClose
	}
	if s := b.streamer.Load(); s != nil {
		if s != r {
			return 0, http.ErrBodyReadAfterClose
		}
		return r.readSource(p)
	}
	n, err, beyond := r.readCopy(p)
	if beyond {
		return r.readSource(p)
	}
	return n, err
}

// readCopy reads what the copy holds, through source where it has not come
// through yet. beyond tells that the next byte lies behind an incomplete copy;
// r then is the one to stream it.
func (r *replayReader) readCopy(p []byte) (n int, err error, beyond bool) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.offset < b.passed:
		n, err = b.copy.readAt(p[:min(len(p), b.passed-r.offset)], r.offset)
	case b.end != nil:
		err = b.end
	case b.passed < b.copy.size || b.complete:
		n, err = r.readSource(p)
		if !b.copy.holds(p[:n], b.passed) {
			b.streamer.Store(r) // something alters the body on its way
			return n, err, false
		}
		b.passed += n
		b.end = err
	default:
		b.streamer.Store(r)
		return 0, nil, true
	}
	r.offset += n
	return n, err, false
}

// readSource reads from the proxy's body on behalf of the transport, which may
// close it at the same time.
func (r *replayReader) readSource(p []byte) (int, error) {
	n, err := r.body.source.Read(p)
	if !r.closed.Load() {
		r.body.note(err)
	}
	return n, err
}

// Close reaches the proxy's body only where no further attempt can use it.
func (r *replayReader) Close() error {
	if r.leave() && r.body.streamer.Load() == r {
		return r.body.source.Close()
	}
	return nil
}

// leave ends reading from the copy and tells whether r had not left before.
func (r *replayReader) leave() bool {
	if r.closed.Swap(true) {
		return false
	}
	r.body.copy.leave()
	return true
}
