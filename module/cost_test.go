package module

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"

	"github.com/seed5db0839e/caddy-cache-aware/internal/measure"
)

// costlyBody is a body that is made to cost the router much.
type costlyBody struct {
	coding string
	body   func() []byte
}

const huge = 64 << 20

// repeated is text of the given size, mostly made of one piece.
func repeated(head, piece string, size int) func() []byte {
	return func() []byte { return []byte(head + strings.Repeat(piece, size/len(piece))) }
}

// bomb is such text compressed, with one coding after the other.
func bomb(codings string, text func() []byte) costlyBody {
	return costlyBody{codings, func() []byte {
		body := text()
		for _, coding := range strings.Split(codings, ", ") {
			body = compress(coding, body)
		}
		return body
	}}
}

func compress(coding string, text []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "br":
		w = brotli.NewWriterLevel(&out, 5)
	case "zstd":
		encoder, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
		if err != nil {
			panic(err)
		}
		w = encoder
	}
	if _, err := w.Write(text); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// runs is a zstd frame of 64 MiB in runs of one character, which takes four
// bytes for 128 KiB.
func runs(c byte) func() []byte {
	const run = 128 << 10
	return func() []byte {
		frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3} // a window of 8 MiB
		for left := huge; left > 0; left -= run {
			header := run<<3 | 1<<1
			if left == run {
				header |= 1
			}
			frame = append(frame, byte(header), byte(header>>8), byte(header>>16), c)
		}
		return frame
	}
}

const openChat = `{"model":"m","messages":[{"role":"user","content":"`

var costlyBodies = map[string]costlyBody{
	"huge chat":           {body: func() []byte { return chatBody(huge) }},
	"huge text":           {body: repeated(openChat, "lorem ipsum ", huge)},
	"huge escapes":        {body: repeated(openChat, `\u00e9\n`, huge)},
	"huge tiny messages":  {body: repeated(`{"messages":[`, `{"role":"user","content":"a"},`, huge)},
	"huge empty messages": {body: repeated(`{"messages":[`, `{},`, huge)},
	"huge token ids":      {body: repeated(`{"prompt":[`, `1,`, huge)},
	"huge list of lists":  {body: repeated(`{"prompt":[`, `[1],`, huge)},
	"huge list of texts":  {body: repeated(`{"input":[`, `"",`, huge)},
	"huge keys":           {body: repeated(`{"a":1,`, `"":1,`, huge)},
	"huge white space":    {body: repeated("", " ", huge)},
	"huge gap":            {body: repeated(`{"messages":`, " ", huge)},
	"huge brackets":       {body: repeated(`{"messages":`, "[", huge)},
	"deep arrays":         {body: repeated(`{"messages":`, "[", 10_000)},
	"deep objects":        {body: repeated(`{"messages":`, `{"a":`, 10_000*5)},
	"zstd bomb":           bomb("zstd", repeated("", " ", huge)),
	"zstd bomb of text":   bomb("zstd", repeated(openChat, "a", huge)),
	"zstd bomb of nodes":  bomb("zstd", repeated(`{"messages":[`, "{},", huge)),
	"br bomb":             bomb("br", repeated("", " ", huge)),
	"br bomb of text":     bomb("br", repeated(openChat, "a", huge)),
	"br bomb of nodes":    bomb("br", repeated(`{"messages":[`, "{},", huge)),
	"zstd bomb of runs":   {"zstd", runs(' ')},
	"zstd bomb of braces": {"zstd", runs('[')},
	"two bombs":           bomb("zstd, zstd", repeated(`{"messages":[`, "{},", huge)),
	"huge noise":          bomb("zstd", func() []byte { return randomBytes(huge) }),
	"gzip bomb":           bomb("gzip", repeated(openChat, "a", huge)),
}

// What a request costs before a replica is known stays below this, whatever
// clients send.
const maxRoutingMemory = 32 << 20

func TestRoutingMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("makes bodies of 64 MiB")
	}
	route := newRoute(t)
	for _, name := range slices.Sorted(maps.Keys(costlyBodies)) {
		t.Run(name, func(t *testing.T) {
			c := costlyBodies[name]
			body := c.body()
			for range 2 { // pools are empty at first
				runtime.GC()
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			route(body, c.coding, func() { runtime.ReadMemStats(&after) })
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%.1f MiB for a body of %.3f MiB", float64(allocated)/(1<<20), float64(len(body))/(1<<20))
			if allocated > maxRoutingMemory {
				t.Errorf("%d bytes allocated, want at most %d", allocated, maxRoutingMemory)
			}
		})
	}
}

// BenchmarkCostlyBody tells the CPU time that such bodies cost; it shall stay
// below 100 ms.
func BenchmarkCostlyBody(b *testing.B) {
	route := newRoute(b)
	for _, name := range slices.Sorted(maps.Keys(costlyBodies)) {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			c := costlyBodies[name]
			body := c.body()
			b.ReportAllocs()
			before := measure.CPU()
			for b.Loop() {
				route(body, c.coding, func() {})
			}
			used := measure.CPU() - before
			b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// newRoute returns a function that has a policy choose a replica for a body,
// calls then and lets go of the body.
func newRoute(t testing.TB) func(body []byte, coding string, then func()) {
	t.Helper()
	state, err := newState(defaultIndexMemory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Destruct() })
	policy := &CacheAware{MaxPrompt: defaultMaxPrompt, state: state, logger: zap.NewNop()}
	pool := make(reverseproxy.UpstreamPool, 4)
	for i := range pool {
		pool[i] = &reverseproxy.Upstream{Host: new(reverseproxy.Host), Dial: fmt.Sprintf("10.0.0.%d:8000", i)}
	}
	return func(body []byte, coding string, then func()) {
		r, cancel := benchmarkRequest(body)
		defer cancel()
		if coding != "" {
			r.Header.Set("Content-Encoding", coding)
		}
		if policy.Select(pool, r, nil) == nil {
			t.Fatal("no replica chosen")
		}
		then()
		_ = r.Body.Close()
	}
}
