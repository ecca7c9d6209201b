package health

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"
)

func TestSampleValue(t *testing.T) {
	const none = -1
	tests := map[string]struct {
		line string
		want float64
	}{
		"plain":                    {`m 3`, 3},
		"labels":                   {`m{a="b"} 0.25`, 0.25},
		"no blank after labels":    {`m{a="b"}7`, 7},
		"blank before labels":      {`m {a="b"} 7`, 7},
		"tabs":                     {"\tm\t{a=\"b\"}\t8", 8},
		"trailing comma":           {`m{a="b",} 9`, 9},
		"timestamp":                {`m{a="b"} 10 1700000000000`, 10},
		"exemplar":                 {`m{a="b"} 11 # {trace_id="x"} 0.5 1.7e9`, 11},
		"exemplar without labels":  {`m 11 # {trace_id="x"} 0.5`, 11},
		"carriage return":          {"m{a=\"b\"} 12\r", 12},
		"brace in a label":         {`m{a="}",b="{"} 13`, 13},
		"escapes in a label":       {`m{a="\"}\\",b="\n"} 14`, 14},
		"exponent":                 {`m 1.795971595e+09`, 1.795971595e9},
		"zero":                     {`m 0`, 0},
		"no value":                 {`m`, none},
		"no value after labels":    {`m{a="b"}`, none},
		"labels without end":       {`m{a="b" 1`, none},
		"quote without end":        {`m{a="b} 1`, none},
		"backslash at the end":     {`m{a="\`, none},
		"not a number":             {`m NaN`, none},
		"infinite":                 {`m +Inf`, none},
		"negative":                 {`m -1`, none},
		"text":                     {`m None`, none},
		"too many digits":          {`m 1` + strings.Repeat("0", 40), none},
		"number without a blank":   {`m{a="b"}1x`, none},
		"out of range of a double": {`m 1e999`, none},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, n := float64(none), 0
			for s := range samples([]byte(tt.line)) {
				n++
				if string(s.name) != "m" {
					t.Errorf("name is %q", s.name)
				}
				if v, ok := s.value(); ok {
					got = v
				}
			}
			if got != tt.want || n != 1 {
				t.Errorf("%d samples, value %v, want %v", n, got, tt.want)
			}
		})
	}
}

func TestSampleLabel(t *testing.T) {
	tests := map[string]struct{ line, want string }{
		"only":                   {`m{x="1"} 0`, "1"},
		"last":                   {`m{a="b",x="1"} 0`, "1"},
		"blanks":                 {`m { a = "b" , x = "1" } 0`, "1"},
		"after an equals sign":   {`m{a="x=",x="1"} 0`, "1"},
		"after an escaped quote": {`m{a="\",x=\"2",x="1"} 0`, "1"},
		"after a brace":          {`m{a="}",x="1"} 0`, "1"},
		"empty":                  {`m{x=""} 0`, ""},
		"absent":                 {`m{xx="1",y="x"} 0`, ""},
		"no labels":              {`m 0`, ""},
		"only in the exemplar":   {`m{a="b"} 0 # {x="1"} 1`, ""},
		"without quotes":         {`m{x=1} 0`, ""},
		"without an end":         {`m{x="1`, ""},
		"nothing":                {`m{`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for s := range samples([]byte(tt.line)) {
				if got := string(s.label("x")); got != tt.want {
					t.Errorf("label is %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func TestSamplesSkip(t *testing.T) {
	page := "# HELP a b\n\n   \n# TYPE a gauge\na 1\n #x 2\nb 3"
	var names []string
	for s := range samples([]byte(page)) {
		names = append(names, string(s.name))
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("samples are %q", names)
	}
}

// oracle sums the samples of each name as prometheus/common parses them, and
// of each name and value of label l. It returns false where that refuses the
// page or where a sample is one that this package refuses on purpose.
func oracle(page []byte) (sums map[string]float64, ok bool) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return nil, false
	}
	sums, ok = make(map[string]float64), true
	take := func(name, label string, v float64) {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			ok = false
		}
		sums[name] += v
		sums[name+" "+label] += v
	}
	for name, family := range families {
		for _, m := range family.Metric {
			label := labelOf(m)
			switch {
			case m.Counter != nil:
				take(name, label, m.Counter.GetValue())
			case m.Gauge != nil:
				take(name, label, m.Gauge.GetValue())
			case m.Untyped != nil:
				take(name, label, m.Untyped.GetValue())
			case m.Histogram != nil:
				take(name+"_sum", label, m.Histogram.GetSampleSum())
				take(name+"_count", label, float64(m.Histogram.GetSampleCount()))
			}
		}
	}
	return sums, ok
}

func labelOf(m *dto.Metric) string {
	for _, l := range m.Label {
		if l.GetName() == "l" {
			return l.GetValue()
		}
	}
	return ""
}

func sumsOf(page []byte, wanted map[string]float64) map[string]float64 {
	sums := make(map[string]float64)
	add := func(name string, v float64) {
		if _, ok := wanted[name]; ok {
			sums[name] += v
		}
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
	for s := range samples(page) {
		if v, ok := s.value(); ok {
			add(string(s.name), v)
			add(string(s.name)+" "+unescape.Replace(string(s.label("l"))), v)
		}
	}
	return sums
}

func TestSamplesLikeExpfmtOnRecordings(t *testing.T) {
	for _, file := range []string{
		"llamacpp/metrics-idle.txt", "llamacpp/metrics-after.txt",
		"vllm-like/metrics-idle.txt", "vllm-like/metrics-after.txt.gz",
	} {
		page := recording(t, file)
		want, ok := oracle(page)
		if !ok || len(want) < 5 {
			t.Fatalf("%s: the oracle finds %d sums, %t", file, len(want), ok)
		}
		if got := sumsOf(page, want); !near(got, want) {
			t.Errorf("%s: sums are %v, want %v", file, got, want)
		}
	}
}

// TestSamplesLikeExpfmt writes pages in every form that the format allows.
func TestSamplesLikeExpfmt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := []byte(drawPage(t))
		want, ok := oracle(page)
		if !ok {
			t.Fatalf("the oracle refuses\n%s", page)
		}
		if got := sumsOf(page, want); !maps.Equal(got, want) {
			t.Errorf("sums of\n%s are %v, want %v", page, got, want)
		}
	})
}

func drawPage(t *rapid.T) string {
	blank := rapid.SampledFrom([]string{"", " ", "\t", "  "})
	gap := rapid.SampledFrom([]string{" ", "\t", " \t"})
	text := rapid.StringOfN(rapid.SampledFrom([]rune(`ab"\{}=,# é`+"\n")), 0, 8, -1)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var b strings.Builder
	for i := range rapid.IntRange(0, 12).Draw(t, "lines") {
		if rapid.Bool().Draw(t, "comment") {
			fmt.Fprintf(&b, "# %s\n", escape.Replace(text.Draw(t, "text")))
		}
		name := rapid.SampledFrom([]string{"a", "vllm:a_total", "b_sum"}).Draw(t, "name")
		b.WriteString(blank.Draw(t, "before") + name)
		if rapid.Bool().Draw(t, "labels") {
			fmt.Fprintf(&b, "%s{%sl%s=%s\"%s\"%s,%sn=\"%d\"}", blank.Draw(t, "b"), blank.Draw(t, "b"),
				blank.Draw(t, "b"), blank.Draw(t, "b"), escape.Replace(text.Draw(t, "label")),
				blank.Draw(t, "b"), blank.Draw(t, "b"), i)
		}
		b.WriteString(gap.Draw(t, "gap"))
		b.WriteString(strconv.Itoa(rapid.IntRange(0, 1000).Draw(t, "value")))
		if rapid.Bool().Draw(t, "timestamp") {
			b.WriteString(gap.Draw(t, "gap") + "1700000000000")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestReadingAllocatesNothing(t *testing.T) {
	pages := map[string]func([]byte, *Report) bool{
		"vllm":     readVLLM,
		"sglang":   readSGLang,
		"llamacpp": readLlama,
		"trtllm":   readTensorRT,
		"tgi":      readTGI,
		"lmdeploy": readLMDeploy,
	}
	page := bytes.Join([][]byte{
		recording(t, "vllm-like/metrics-after.txt.gz"), recording(t, "llamacpp/metrics-after.txt"),
		[]byte(sglangPage), []byte(trtllmPage), []byte(tgiPage), []byte(lmdeployPage),
	}, []byte("\n"))
	for engine, read := range pages {
		var r Report
		allocs := testing.AllocsPerRun(20, func() {
			r = unknown()
			if !read(page, &r) {
				t.Error("nothing is told")
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations for a page", engine, allocs)
		}
	}
}
