package module

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// attemptVar is the request variable in which Select leaves the attempt that
// the observed transport is to report to.
const attemptVar = "cache_aware.attempt"

// errResponseClosed is how an attempt fails whose answer was not read to its
// end although the client is still there, as when the proxy retries on it.
var errResponseClosed = errors.New("answer closed before its end")

// errRequestBody marks the failure of an attempt whose request could not be
// read from the client, which is no fault of the replica.
var errRequestBody = errors.New("reading request body")

// attempt hears what becomes of one attempt at a replica. Each method is
// called at most once except usage; exactly one of ended and failed comes
// last. All calls come from the goroutine that serves the request.
type attempt interface {
	// headers tells that the answer has begun.
	headers(status int, header http.Header, at time.Time)
	// firstToken tells that the first content of a streamed answer is there.
	firstToken(at time.Time)
	// identified tells the id of the answer, as soon as it is known.
	identified(id string)
	// usage tells what the answer says about its cost: at its end, and before
	// the first token too if the prompt's length is known by then. The last one
	// counts.
	usage(u usage)
	// ended tells that the answer was read to its end, or that the connection
	// was upgraded and what follows is not watched.
	ended(at time.Time)
	// failed tells of a transport error, or that the answer ended with an
	// error or was closed early: with the context's error if the client left,
	// an error that is errRequestBody if its request was broken, and
	// errResponseClosed if the answer was not wanted.
	failed(err error, at time.Time)
}

// attemptPlace is where the policy leaves the attempt that follows.
type attemptPlace struct{ attempt attempt }

// setAttempt leaves a for the observed transport of the attempt that follows. The
// request's variables are written for the first attempt only: a connection that an
// earlier one began to dial may still read them.
func setAttempt(r *http.Request, a attempt) {
	if place, ok := caddyhttp.GetVar(r.Context(), attemptVar).(*attemptPlace); ok {
		place.attempt = a
		return
	}
	caddyhttp.SetVar(r.Context(), attemptVar, &attemptPlace{a})
}

// takeAttempt returns the attempt left by setAttempt, once.
func takeAttempt(r *http.Request) attempt {
	place, ok := caddyhttp.GetVar(r.Context(), attemptVar).(*attemptPlace)
	if !ok {
		return nil
	}
	a := place.attempt
	place.attempt = nil
	return a
}

// transportObserver watches the round trips of one proxy handler. Its fields
// are set before the first of them.
type transportObserver struct {
	// responseBuffers tells that the proxy reads answers before it decides
	// whether to retry, so that the body must be kept until the request ends.
	responseBuffers bool
	// health watches requests that no client sent, if not nil.
	health *healthWatch
}

// observe sends req through next and reports to the request's attempt.
func (o *transportObserver) observe(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	a := takeAttempt(req)
	if a == nil {
		return o.health.observe(req, next)
	}
	body := sentBody(req)
	res, err := body.send(req, next)
	at := time.Now()
	if err != nil {
		a.failed(body.blame(err), at)
		return res, err
	}
	a.headers(res.StatusCode, res.Header, at)
	if _, upgraded := res.Body.(io.Writer); upgraded {
		a.ended(at)
		return res, nil
	}
	if o.responseBuffers {
		body = nil // may still be needed
	}
	res.Body = &observedBody{
		ReadCloser: res.Body,
		request:    req,
		sent:       body,
		attempt:    a,
		scanner:    newResponseScanner(res.Header),
	}
	return res, nil
}

// sentBody returns the body that openBody has given req, if it has.
func sentBody(req *http.Request) *replayBody {
	if reader, ok := req.Body.(*replayReader); ok {
		return reader.body
	}
	return nil
}

// send sends req, whose body is b, through next, unless the body is broken.
func (b *replayBody) send(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	if b != nil {
		if err := b.refusal(req.Context()); err != nil {
			_ = req.Body.Close()
			return nil, err
		}
	}
	return next.RoundTrip(req)
}

// blame marks an error of which a broken body is the cause.
func (b *replayBody) blame(err error) error {
	if b != nil && b.broken.Load() != nil {
		return fmt.Errorf("%w: %w", errRequestBody, err)
	}
	return err
}

// observedBody passes an answer on as it comes and reports what it saw.
type observedBody struct {
	io.ReadCloser
	request *http.Request
	sent    *replayBody // released by the first read, which rules a retry out
	attempt attempt
	scanner *responseScanner
	tokens  bool
	known   bool // the answer's id has been told
	done    bool
}

func (b *observedBody) Read(p []byte) (int, error) {
	if b.sent != nil {
		b.sent.release()
		b.sent = nil
	}
	n, err := b.ReadCloser.Read(p)
	b.scanner.feed(p[:n])
	if !b.tokens && b.scanner.firstToken() {
		b.tokens = true
		if u, ok := b.scanner.usage(); ok && u.promptTokens > 0 {
			b.attempt.usage(u)
		}
		b.attempt.firstToken(time.Now())
	}
	b.identify()
	if err != nil {
		b.finish(err)
	}
	return n, err
}

// identify tells the answer's id once it is known.
func (b *observedBody) identify() {
	if id := b.scanner.json.id; !b.known && id != nil {
		b.known = true
		b.attempt.identified(string(id))
	}
}

func (b *observedBody) Close() error {
	err := b.request.Context().Err()
	if err == nil {
		err = errResponseClosed
	}
	b.finish(err)
	return b.ReadCloser.Close()
}

// finish reports how the answer ended, once.
func (b *observedBody) finish(err error) {
	if b.done {
		return
	}
	b.done = true
	b.scanner.end()
	b.identify()
	if u, ok := b.scanner.usage(); ok {
		b.attempt.usage(u)
	}
	if err == io.EOF {
		b.attempt.ended(time.Now())
		return
	}
	b.attempt.failed(err, time.Now())
}
