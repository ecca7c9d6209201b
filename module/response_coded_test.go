package module

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/seed5db0839e/caddy-cache-aware/internal/measure"
)

func coded(header http.Header, coding string) http.Header {
	return merged(maps.Clone(header), http.Header{"Content-Encoding": {coding}})
}

// A compressed answer says the same.
func TestScanCompressedAnswers(t *testing.T) {
	for name, c := range engineAnswers {
		if c.header.Get("Content-Encoding") != "" {
			continue
		}
		for _, coding := range []string{"gzip", "br", "zstd"} {
			answer := compress(coding, []byte(c.answer))
			for _, n := range []int{len(answer), 50, 1} {
				got, _ := scanAnswer(coded(c.header, coding), answer, n).usage()
				if got = nanoseconds(got); got != c.want {
					t.Errorf("%s in %s, pieces of %d:\n got %+v\nwant %+v", name, coding, n, got, c.want)
				}
			}
		}
	}
}

type flushWriter interface {
	io.Writer
	Flush() error
}

// What cannot wait is known while the answer is still streamed.
func TestScanCompressedStream(t *testing.T) {
	var sent bytes.Buffer
	encoder, err := zstd.NewWriter(&sent)
	if err != nil {
		t.Fatal(err)
	}
	for coding, w := range map[string]flushWriter{"gzip": gzip.NewWriter(&sent), "br": brotli.NewWriter(&sent), "zstd": encoder} {
		s := newResponseScanner(coded(answerHeader(".txt"), coding))
		event := func(text string) {
			_, _ = io.WriteString(w, sse(text)) // to memory
			_ = w.Flush()
			s.feed(sent.Bytes())
			sent.Reset()
		}
		event(`{"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}`)
		if string(s.json.id) != "resp_1" || s.firstToken() {
			t.Errorf("%s: id %q, first token %v", coding, s.json.id, s.firstToken())
		}
		for range 20 { // the first of them may not be worth decoding everything again
			event(`{"type":"response.output_text.delta","delta":"Hi"}`)
		}
		if !s.firstToken() {
			t.Errorf("%s: no first token", coding)
		}
	}
}

// However long a compressed answer is, little of it is kept.
func TestScanCompressedIsBounded(t *testing.T) {
	long := compress("gzip", append([]byte(`{"id":"a","text":"`), randomBytes(4<<20)...))
	bomb := compress("gzip", []byte(`{"id":"a","text":"`+strings.Repeat("a", 64<<20)))
	for name, answer := range map[string][]byte{"long": long, "bomb": bomb, "broken": randomBytes(4 << 20)} {
		for _, n := range []int{1000, len(answer)} {
			var s *responseScanner
			measure.Bounded(t, 8<<20, func() { s = scanAnswer(coded(answerHeader(".json"), "gzip"), answer, n) })
			if kept := cap(s.coded.kept); kept > 2*maxCodedAnswer {
				t.Errorf("%s: %d bytes kept", name, kept)
			}
			if name != "broken" && string(s.json.id) != "a" {
				t.Errorf("%s: id %q", name, s.json.id)
			}
		}
	}
}
