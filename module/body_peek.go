package module

import (
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// peekedBody looks ahead at the very bottom of a request's body: between the
// server's own body and the reader by which Caddy guards it against stalled
// clients. Whoever reads the request later gets the bytes looked at as if they
// had just arrived. The original request therefore stays unread, whole for a
// proxy in handle_errors, and a limit set by request_body counts each byte
// once.
type peekedBody struct {
	inner io.ReadCloser
	guard *caddyhttp.IdleTimeoutReader
	copy  *bodyCopy

	mode   peekMode
	asked  int
	end    error // what inner ended with while looking ahead
	offset int
}

type peekMode uint8

const (
	peekHold  peekMode = iota // give nothing once, note being asked
	peekAhead                 // hand on inner's bytes, keep its end back
	peekServe                 // give the bytes looked at, then inner's
)

// peekBody slips a peekedBody under r's body. To learn whether r's body ends
// there, it reads from it once. It returns nil if not (the guard is switched
// off, the body was buffered, replaced or is decoded on the way); that read has
// then filled the beginning of c and may have ended with an error.
func peekBody(r *http.Request, c *bodyCopy) (*peekedBody, error) {
	guard, _ := caddyhttp.IdleTimeoutsFromContext(r.Context())
	if guard == nil {
		return nil, nil
	}
	p := &peekedBody{inner: guard.ReadCloser, guard: guard, copy: c}
	guard.ReadCloser = p
	err := c.fillOnce(r.Body)
	if p.asked == 1 && c.size == 0 && err == nil {
		return p, nil
	}
	guard.ReadCloser = p.inner
	return nil, err
}

// ahead returns a reader of inner's bytes under the guard's deadlines.
func (p *peekedBody) ahead() io.Reader {
	p.mode = peekAhead
	return aheadReader{p}
}

type aheadReader struct{ *peekedBody }

func (a aheadReader) Read(b []byte) (int, error) {
	n, err := a.guard.Read(b)
	if err == nil {
		err = a.end
	}
	return n, err
}

// serve ends looking ahead.
func (p *peekedBody) serve() {
	p.mode = peekServe
	if p.copy.size > 0 {
		p.copy.join()
	}
	p.clearDeadline()
}

func (p *peekedBody) Read(b []byte) (int, error) {
	switch {
	case p.mode == peekHold:
		if p.asked++; p.asked > 1 {
			return p.inner.Read(b) // for a reader that insists
		}
		return 0, nil
	case p.mode == peekAhead:
		// The guard would repeat an error for ever; inner is asked again
		// when the body is sent.
		n, err := p.inner.Read(b)
		p.end = err
		return n, nil
	case p.offset == p.copy.size:
		return p.inner.Read(b)
	}
	n, err := p.copy.readAt(b, p.offset)
	p.offset += n
	if p.offset == p.copy.size {
		p.copy.leave()
		if err == nil && p.end == io.EOF {
			// As the server's own body does: it may be closed before the next
			// read, by an answer that comes at once.
			err = io.EOF
		}
	}
	p.clearDeadline()
	return n, err
}

func (p *peekedBody) Close() error { return p.inner.Close() }

// clearDeadline takes back the deadline that the guard sets before each read,
// once nothing more is to arrive: net/http then watches the connection for
// the client's leaving and would take the deadline for that.
func (p *peekedBody) clearDeadline() {
	if p.end == io.EOF {
		_ = p.guard.Ctrl.SetReadDeadline(time.Time{})
	}
}
