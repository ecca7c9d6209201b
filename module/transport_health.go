package module

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// maxHealthAnswer bounds the size of an answer that a healthWatch keeps, in
// bytes; longer ones are not reported.
const maxHealthAnswer = 4 << 20

// healthAnswer is a replica's complete answer to a request that no client sent.
type healthAnswer struct {
	dial   string // the replica's address as configured
	uri    string // path and query
	asked  time.Time
	header http.Header
	body   []byte
}

// healthWatch listens to GET requests that no client sent, which are Caddy's
// active health checks. Its functions are called from their goroutines.
type healthWatch struct {
	// wants tells whether answers from this replica and URI are of interest.
	wants func(dial, uri string) bool
	// report gets each of them that has status 200, once it has been read.
	report func(healthAnswer)
}

// observe sends req through next and listens to the answer if it is wanted.
func (w *healthWatch) observe(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	dial, ours := w.watches(req)
	asked := time.Now()
	res, err := next.RoundTrip(req)
	if !ours || err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	answer := healthAnswer{dial: dial, uri: req.URL.RequestURI(), asked: asked, header: res.Header}
	res.Body = &healthBody{ReadCloser: res.Body, watch: w, answer: answer}
	return res, nil
}

// watches tells which replica req goes to and whether to listen.
func (w *healthWatch) watches(req *http.Request) (dial string, ok bool) {
	if w == nil || req.Method != http.MethodGet || req.Context().Value(caddyhttp.VarsCtxKey) != nil {
		return "", false
	}
	info, ok := reverseproxy.GetDialInfo(req.Context())
	if !ok || info.Upstream == nil {
		return "", false
	}
	return info.Upstream.Dial, w.wants(info.Upstream.Dial, req.URL.RequestURI())
}

// healthBody keeps what is read through it and reports it at its end.
type healthBody struct {
	io.ReadCloser
	watch  *healthWatch
	answer healthAnswer
	kept   bytes.Buffer
	done   bool
}

func (b *healthBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.done {
		return n, err
	}
	if b.kept.Len()+n > maxHealthAnswer {
		b.done = true
		b.kept = bytes.Buffer{}
		return n, err
	}
	b.kept.Write(p[:n])
	if err == io.EOF {
		b.done = true
		b.answer.body = b.kept.Bytes()
		b.watch.report(b.answer)
	}
	return n, err
}
