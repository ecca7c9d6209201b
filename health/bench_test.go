package health

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// bigPage returns a vLLM page of about 200 KB: the recorded one, told by as
// many data-parallel ranks as it takes.
func bigPage(tb testing.TB) []byte {
	recorded := string(recording(tb, "vllm-like/metrics-after.txt.gz"))
	var b bytes.Buffer
	for rank := 0; b.Len() < 200<<10; rank++ {
		with := fmt.Sprintf(`{engine="%d",model_name=`, rank)
		for line := range strings.Lines(recorded) {
			// Later ranks have counted more, so their digits differ.
			if head, value, ok := strings.Cut(line, "} "); ok && rank > 0 {
				if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
					line = fmt.Sprintf("%s} %v\n", head, v*float64(rank)*1.37)
				}
			}
			b.WriteString(strings.Replace(line, `{model_name=`, with, 1))
		}
	}
	return b.Bytes()
}

// BenchmarkRead reads a page of 200 KB that is already decoded.
func BenchmarkRead(b *testing.B) {
	page := bigPage(b)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	var r Report
	for b.Loop() {
		if !vllm.load[0].into(&r, page) {
			b.Fatal("the page is refused")
		}
	}
}

// BenchmarkUnzip decodes a page of 200 KB.
func BenchmarkUnzip(b *testing.B) {
	page := bigPage(b)
	packed := zipped(page)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	s := scratches.New().(*scratch)
	for b.Loop() {
		if _, err := s.read(bytes.NewReader(packed), "gzip", 4<<20); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(packed)), "zipped-B")
}

// BenchmarkAdd is what a request pays for naming its replica.
func BenchmarkAdd(b *testing.B) {
	p := newPoller(b, Config{Fetch: newEngine(nil).fetch})
	p.Add("a:8000", "b:8000", "c:8000")
	b.ReportAllocs()
	for b.Loop() {
		p.Add("b:8000")
	}
}
