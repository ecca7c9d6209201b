package health

import (
	"bytes"
	"math"
	"regexp"
	"testing"
)

// checkPage reads a body as a page and checks what holds for every report.
func checkPage(t *testing.T, p page, body []byte) {
	var r Report
	if !p.into(&r, body) {
		return
	}
	for i, q := range r.quantities() {
		if *q < 0 || math.IsInf(*q, 0) {
			t.Errorf("%s: %s is %v", p.path, quantityNames[i], *q)
		}
	}
	if r.KVUsage > 1 {
		t.Errorf("%s: KV usage is %v", p.path, r.KVUsage)
	}
}

// sound matches pages of the format's plain form, in which engines write. The
// oracle has ways of its own with others, and with TYPE lines, which make it
// take several samples together.
var sound = regexp.MustCompile(`^(?:[ \t]*(?:#.*|[a-zA-Z_:][a-zA-Z0-9_:]*(?:[ \t]+|[ \t]*\{` +
	`(?:[ \t]*[a-zA-Z_][a-zA-Z0-9_]*[ \t]*=[ \t]*"(?:[^"\\\n]|\\[\\"n])*"[ \t]*,?)*` +
	`[ \t]*\}[ \t]*)[0-9.eE+]+(?:[ \t]+[0-9]+)?)?\n)*$`)

// FuzzSamples compares the scan with prometheus/common's parser.
func FuzzSamples(f *testing.F) {
	f.Add([]byte("# HELP a b\na{l=\"x\"} 1\n"))
	f.Add([]byte(tgiPage))
	f.Add([]byte("a{l=\"\\\"}\\\\\",} 1 2\nb 1e3\n\ta\t{ l = \"\" }\t.5\n"))
	f.Fuzz(func(t *testing.T, page []byte) {
		for s := range samples(page) {
			s.value()
			s.label("l")
		}
		if !sound.Match(page) || bytes.Contains(page, []byte("TYPE")) {
			return
		}
		want, ok := oracle(page)
		if got := sumsOf(page, want); ok && !near(got, want) {
			t.Errorf("sums are %v, want %v", got, want)
		}
	})
}

// fuzzPages fuzzes all pages of an engine, with the bodies of the other tests
// as seeds.
func fuzzPages(f *testing.F, d *dialect) {
	for _, tt := range engineTests {
		f.Add([]byte(tt.body))
	}
	for _, tt := range vllmPages {
		f.Add([]byte(tt.page))
	}
	for _, file := range []string{"props.json", "slots-after.json", "metrics-after.txt", "models.json"} {
		f.Add(recording(f, "llamacpp/"+file))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range d.load {
			checkPage(t, p, body)
		}
		for _, p := range d.facts {
			checkPage(t, p, body)
		}
	})
}

func FuzzVLLM(f *testing.F)        { fuzzPages(f, &vllm) }
func FuzzSGLang(f *testing.F)      { fuzzPages(f, &sglang) }
func FuzzLlamaCPP(f *testing.F)    { fuzzPages(f, &llamacpp) }
func FuzzTensorRTLLM(f *testing.F) { fuzzPages(f, &trtllm) }
func FuzzTGI(f *testing.F)         { fuzzPages(f, &tgi) }
func FuzzLMDeploy(f *testing.F)    { fuzzPages(f, &lmdeploy) }
func FuzzOllama(f *testing.F)      { fuzzPages(f, &ollama) }

// FuzzObserve gives an unknown replica any page at any path.
func FuzzObserve(f *testing.F) {
	f.Add("/metrics", "gzip", zipped([]byte(vllmLoad)))
	f.Add("/metrics", "", []byte(" [{"))
	f.Add("/api/ps", "", []byte(`{"models":[]}`))
	e := newEngine(nil)
	f.Fuzz(func(t *testing.T, path, encoding string, body []byte) {
		p := newPoller(t, Config{Fetch: e.fetch, MaxBytes: 1 << 20})
		p.Add("a")
		header := map[string][]string{"Content-Encoding": {encoding}}
		if p.Observe("a", path, p.replica("a").changed, header, body) && !p.Wants("a", path) {
			t.Error("a page is taken that is not wanted")
		}
		nameItself(dialects, body)
	})
}
