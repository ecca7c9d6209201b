package tokenizer

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/seed5db0839e/caddy-cache-aware/internal/measure"
)

// compressors write the codings, by name.
var compressors = map[string]func(io.Writer) io.WriteCloser{
	"gzip":        func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"br":          func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd":        func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	"deflate":     func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z },
}

func coding(name string) string {
	if name == "raw deflate" {
		return "deflate"
	}
	return name
}

func compress(name string, body []byte) []byte {
	var out bytes.Buffer
	w := compressors[name](&out)
	_, _ = w.Write(body)
	_ = w.Close()
	return out.Bytes()
}

// bomb compresses n zero bytes.
func bomb(name string, n int) []byte {
	var out bytes.Buffer
	w := compressors[name](&out)
	for zeros := make([]byte, 1<<20); n > 0; n -= len(zeros) {
		_, _ = w.Write(zeros[:min(n, len(zeros))])
	}
	_ = w.Close()
	return out.Bytes()
}

func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(9, 9))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestDecode(t *testing.T) {
	bodies := map[string][]byte{"chat": benchChat(100 << 10), "short": []byte(`{"a":1}`), "empty": {}, "noise": noise(600 << 10)}
	for name := range compressors {
		for label, body := range bodies {
			packed := compress(name, body)
			got, truncated, err := Decode(coding(name), packed, 4<<20)
			if err != nil || truncated || !bytes.Equal(got, body) {
				t.Errorf("%s of %s: %d of %d bytes, truncated %v, %v", name, label, len(got), len(body), truncated, err)
			}
			if len(body) < 10 {
				continue
			}
			got, truncated, err = Decode(coding(name), packed, 10)
			if err != nil || !truncated || !bytes.Equal(got, body[:10]) {
				t.Errorf("%s of %s up to 10: %d bytes, truncated %v, %v", name, label, len(got), truncated, err)
			}
			got, truncated, err = Decode(coding(name), packed, len(body))
			if err != nil || truncated || !bytes.Equal(got, body) {
				t.Errorf("%s of %s up to its length: %d bytes, truncated %v, %v", name, label, len(got), truncated, err)
			}
		}
	}
}

func TestDecodeOfPrefix(t *testing.T) {
	body := benchChat(300 << 10)
	for name := range compressors {
		packed := compress(name, body)
		for _, n := range []int{1, 2, 5, len(packed) / 2, len(packed) - 20} {
			got, truncated, err := Decode(coding(name), packed[:n], 1<<20)
			if err != nil || !truncated || !bytes.HasPrefix(body, got) {
				t.Errorf("%s cut at %d: %d bytes, truncated %v, %v", name, n, len(got), truncated, err)
			}
			if n > 20 && len(got) < len(body)/4 {
				t.Errorf("%s cut at %d: only %d bytes", name, n, len(got))
			}
		}
	}
}

func TestDecodeLists(t *testing.T) {
	body := []byte("hello")
	twice := compress("br", compress("gzip", body))
	for _, tt := range []struct {
		encodings string
		body      []byte
		ok        bool
	}{
		{"", body, true}, {"identity", body, true}, {" X-GZIP ", compress("gzip", body), true},
		{"gzip, br", twice, true}, {"br, gzip", twice, false}, {"gzip,,", body, false},
		{"compress", body, false}, {"gzip", bytes.Repeat(body, 4), false}, {"zstd", body, false}, {"br", []byte("{\"a\":1}"), false},
	} {
		got, _, err := Decode(tt.encodings, tt.body, 100)
		if (err == nil) != tt.ok || tt.ok && !bytes.Equal(got, body) {
			t.Errorf("%q: got %q, %v", tt.encodings, got, err)
		}
		if err != nil && !errors.Is(err, BadEncoding) {
			t.Errorf("%q: %v is no BadEncoding", tt.encodings, err)
		}
	}
	if got, truncated, err := Decode("", body, 3); string(got) != "hel" || !truncated || err != nil {
		t.Errorf("got %q, %v, %v", got, truncated, err)
	}
}

func TestDecodeBombs(t *testing.T) {
	const limit = 8 << 20
	for name := range compressors {
		packed := bomb(name, limit+1<<20)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		got, truncated, err := Decode(coding(name), packed, limit)
		runtime.ReadMemStats(&after)
		if err != nil || !truncated || len(got) != limit {
			t.Errorf("%s: %d bytes, truncated %v, %v", name, len(got), truncated, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
			t.Errorf("%s: a bomb of %d bytes allocated %d", name, len(packed), used)
		}
	}
}

func TestDecodeBoundsIdleInput(t *testing.T) {
	// Empty stored blocks of deflate; empty frames of zstd.
	blocks := bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 1<<20)
	if _, _, err := Decode("deflate", blocks, 1<<20); !errors.Is(err, errIdle) {
		t.Errorf("empty blocks: %v", err)
	}
	frames := bytes.Repeat([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, 1<<20)
	if _, _, err := Decode("zstd", frames, 1<<20); !errors.Is(err, errIdle) {
		t.Errorf("empty frames: %v", err)
	}
	members := bytes.Repeat(compress("gzip", nil), 1<<16)
	if got, _, err := Decode("gzip", members, 1<<20); err != nil || len(got) != 0 {
		t.Errorf("empty members: %d bytes, %v", len(got), err)
	}
}

func TestDecodeRefusesLargeWindow(t *testing.T) {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Decode("zstd", out.Bytes(), 1<<20); !errors.Is(err, BadEncoding) {
		t.Errorf("a window of 64 MiB: %v", err)
	}
}

func TestDecodeConcurrently(t *testing.T) {
	body := benchChat(50 << 10)
	var wg sync.WaitGroup
	for name := range compressors {
		packed := compress(name, body)
		for range 4 {
			wg.Go(func() {
				for range 5 {
					if got, _, err := Decode(coding(name), packed, 1<<20); err != nil || !bytes.Equal(got, body) {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

func FuzzDecode(f *testing.F) {
	names := []string{"gzip", "br", "zstd", "deflate"}
	for i, name := range names {
		f.Add(uint8(i), compress(name, []byte(`{"model":"m","messages":[]}`)))
		f.Add(uint8(i), bomb(name, 1<<20))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		const limit = 64 << 10
		var got []byte
		var err error
		// Of two windows of zstd and what it buffers.
		measure.Bounded(t, 4*maxWindow, func() { got, _, err = Decode(names[int(which)%len(names)], body, limit) })
		if len(got) > limit {
			t.Errorf("%d bytes", len(got))
		}
		if err != nil && !errors.Is(err, BadEncoding) {
			t.Errorf("%v is no BadEncoding", err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := benchChat(400 << 10)
	for _, name := range []string{"gzip", "br", "zstd", "deflate"} {
		for label, packed := range map[string][]byte{"400KB": compress(name, body), "bomb": bomb(name, 64<<20)} {
			b.Run(name+"/"+label, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					out, _, err := Decode(name, packed, 8<<20)
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(len(out)))
				}
			})
		}
	}
}
