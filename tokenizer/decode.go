package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxEncodings bounds how many codings may be applied to one body.
	maxEncodings = 2
	// maxWindow is the largest zstd window over HTTP (RFC 9659, section 3).
	maxWindow = 8 << 20
	// idleInput is how much input a decoder may consume beyond twice its output. It
	// bounds the time for input that decodes to nothing.
	idleInput = 256 << 10
	// Between two codings lie at most this many bytes, or this share of the limit.
	minBetween, betweenShare = 64 << 10, 16
)

var errIdle = errors.New("input decodes to next to nothing")

// decompressor is a decoder that can be used again.
type decompressor interface {
	io.Reader
	reset(io.Reader) error
}

type (
	gzipReader   struct{ gzip.Reader }
	brotliReader struct{ brotli.Reader }
	zstdReader   struct{ *zstd.Decoder }
	flateReader  struct {
		io.ReadCloser
		head [2]byte
	}
)

// reset reads no members after the first: a body of nothing but member headers would
// keep the decoder busy.
func (z *gzipReader) reset(r io.Reader) error {
	if err := z.Reset(r); err != nil {
		return err
	}
	z.Multistream(false)
	return nil
}

func (b *brotliReader) reset(r io.Reader) error { return b.Reset(r) }

func (z *zstdReader) reset(r io.Reader) error { return z.Reset(r) }

// reset takes the deflate coding with its zlib wrapping, and without, as some clients
// send it.
func (f *flateReader) reset(r io.Reader) error {
	n, err := io.ReadFull(r, f.head[:])
	if err != nil {
		return err
	}
	wrapped := f.head[0]&0x0f == 8 && (int(f.head[0])<<8|int(f.head[1]))%31 == 0
	if !wrapped {
		r = io.MultiReader(bytes.NewReader(f.head[:n]), r)
	}
	return f.ReadCloser.(flate.Resetter).Reset(r, nil)
}

// decoders holds a pool of decoders per coding.
var decoders = map[string]*sync.Pool{
	"gzip":    {New: func() any { return new(gzipReader) }},
	"br":      {New: func() any { return new(brotliReader) }},
	"deflate": {New: func() any { return &flateReader{ReadCloser: flate.NewReader(nil)} }},
	"zstd": {New: func() any {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.IgnoreChecksum(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return &zstdReader{z}
	}},
}

// Decode undoes the content codings of a body, or of the beginning of one: gzip, zstd,
// br, deflate, and lists of up to two of these, of which the inner one is read up to a
// share of limit. It returns at most limit bytes, and whether more would follow, be it for
// a limit or because body ends early. The result may share memory with body. Memory is
// bounded by limit and the decoder's window of at most 16 MiB, time by limit and the length
// of body. Errors wrap a Reason.
func Decode(encodings string, body []byte, limit int) (out []byte, truncated bool, err error) {
	names := strings.Split(encodings, ",")
	if len(names) > maxEncodings {
		return nil, false, fmt.Errorf("%w: %d codings", BadEncoding, len(names))
	}
	out = body
	for i := len(names) - 1; i >= 0; i-- {
		name := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(names[i])), "x-")
		if name == "" || name == "identity" {
			continue
		}
		most := limit
		if i > 0 {
			most = min(limit, max(limit/betweenShare, minBetween))
		}
		var short bool
		if out, short, err = decodeOne(name, out, most); err != nil {
			return nil, false, err
		}
		truncated = truncated || short
	}
	if len(out) > limit {
		out, truncated = out[:limit], true
	}
	return out, truncated, nil
}

func decodeOne(name string, body []byte, limit int) (out []byte, truncated bool, err error) {
	pool := decoders[name]
	if pool == nil {
		return nil, false, fmt.Errorf("%w: unknown coding %q", BadEncoding, name[:min(len(name), 32)])
	}
	d := pool.Get().(decompressor)
	src := &input{r: bytes.NewReader(body)}
	if err = d.reset(src); err == nil {
		out, truncated, err = src.decode(d, limit)
	}
	_ = d.reset(bytes.NewReader(nil)) // let go of body
	pool.Put(d)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return out, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: reading %s: %w", BadEncoding, name, err)
	}
	return out, truncated, nil
}

// input feeds a decoder no faster than it decodes.
type input struct {
	r           *bytes.Reader
	in, decoded int
}

func (s *input) Read(p []byte) (int, error) {
	allowed := idleInput + 2*s.decoded - s.in
	if allowed <= 0 {
		return 0, errIdle
	}
	n, err := s.r.Read(p[:min(len(p), allowed)])
	s.in += n
	return n, err
}

// firstOutput is where to begin in order to reach limit by growing fourfold: the
// smallest of limit and its 4th, 16th and so on that is at least want. What growing
// leaves behind is then at most a third of limit.
func firstOutput(want, limit int) int {
	for (limit+3)/4 >= want {
		limit = (limit + 3) / 4
	}
	return limit
}

// decode reads from d up to limit bytes, and one more to see whether that was all.
func (s *input) decode(d io.Reader, limit int) (out []byte, truncated bool, err error) {
	out = make([]byte, 0, firstOutput(max(4<<10, 4*s.r.Len()), limit+1))
	for err == nil {
		if len(out) == cap(out) {
			out = append(make([]byte, 0, min(limit+1, 4*cap(out))), out...)
		}
		var n int
		n, err = d.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		s.decoded += n
		if len(out) > limit {
			return out[:limit], true, nil
		}
	}
	if err == io.EOF {
		err = nil
	}
	return out, false, err
}
