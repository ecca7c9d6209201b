package health

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// wanted are the header fields of every request for a page. Bodies are decoded
// here, so that a bound on the decoded size holds.
var wanted = http.Header{"Accept-Encoding": {"gzip"}}

// errTooLong is returned for a body above the bound. What was read of it is
// not used: half a page would tell of half the ranks.
var errTooLong = fmt.Errorf("%w: body is too long", errAbsent)

// keptBuffer bounds the buffers that are kept for the next page.
const keptBuffer = 1 << 20

// scratch is what reading one page takes. It is reused from page to page.
type scratch struct {
	buf    []byte
	zip    gzip.Reader
	report Report
}

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, 0, 64<<10)} }}

func (s *scratch) release() {
	if cap(s.buf) <= keptBuffer {
		scratches.Put(s)
	}
}

// read returns a decoded body of at most limit bytes, which stays valid until
// the next read. No more than that is read in compressed form either.
func (s *scratch) read(body io.Reader, encoding string, limit int) ([]byte, error) {
	body = io.LimitReader(body, int64(limit)+1)
	switch strings.ToLower(encoding) {
	case "", "identity":
	case "gzip", "x-gzip":
		if err := s.zip.Reset(body); err != nil {
			return nil, fmt.Errorf("reading gzip header: %w", err)
		}
		body = &s.zip
	default:
		return nil, fmt.Errorf("%w: content encoding %.20q is not known", errAbsent, encoding)
	}
	return s.readAll(body, limit)
}

func (s *scratch) readAll(body io.Reader, limit int) ([]byte, error) {
	s.buf = s.buf[:0]
	for {
		if len(s.buf) == cap(s.buf) {
			s.buf = slices.Grow(s.buf, len(s.buf))
		}
		n, err := body.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		switch {
		case len(s.buf) > limit:
			return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, limit)
		case err == io.EOF:
			return s.buf, nil
		case err != nil:
			return nil, fmt.Errorf("reading body: %w", err)
		}
	}
}
