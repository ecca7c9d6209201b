package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// sample is a report of the smallest study that shows everything.
func sample(t *testing.T, policies ...string) Report {
	t.Helper()
	scenario, err := fleet.ScenarioNamed("tool-heavy")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := fleet.Draw{Replicas: 3, Seed: 1, Duration: 40 * time.Second}.Scenario(scenario)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := fleet.Comparison{Options: drawn.Options, Policies: policies, Seed: 1, Steps: 20}.Run()
	if err != nil {
		t.Fatal(err)
	}
	return Report{
		Facts:   [][2]string{{"traffic", `<script>alert("x")</script>`}},
		Command: "caddy cache-aware simulate --workload tool-heavy", Outcomes: outcomes,
		Warmup: drawn.Warmup, Until: drawn.Until,
	}
}

func write(t *testing.T, r Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageShowsEveryPolicy(t *testing.T) {
	policies := []string{"cache_aware", "round-robin", "longest-prefix"}
	text := write(t, sample(t, policies...))
	for _, policy := range policies {
		for _, want := range []string{
			`<th scope="row">` + policy + `</th>`,
			`<title>` + policy + `</title>`,
			`<title>` + policy + `: replica 3</title>`,
			`<h3>` + policy + `</h3>`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page has no %s", want)
			}
		}
	}
	if n := strings.Count(text, `<svg class="plot`); n != 2+len(policies) {
		t.Errorf("%d plots, want %d", n, 2+len(policies))
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "ZgotmplZ") {
		t.Error("the page shows a number that is none, or a value that the template refused")
	}
	if strings.Contains(text, "<script") {
		t.Error("a value got into the page as markup")
	}
}

// The page loads nothing: it has no address in it, and forbids itself to.
func TestPageNeedsNothingElse(t *testing.T) {
	text := write(t, sample(t, "cache_aware"))
	if found := regexp.MustCompile(`(?i)(https?:|src=|url\(|@import|<link)`).FindString(text); found != "" {
		t.Errorf("the page has %q", found)
	}
	if !strings.Contains(text, `default-src 'none'`) {
		t.Error("the page does not forbid itself to load anything")
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	text := write(t, sample(t, "cache_aware", "random"))
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(text, -1) {
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %.200s", err, svg)
			}
		}
	}
}

func TestEmptyOutcomeIsShown(t *testing.T) {
	r := Report{Until: time.Minute, Outcomes: []fleet.Outcome{{
		Row:    fleet.Row{Policy: "cache_aware"},
		Result: &fleet.Result{},
		Series: &fleet.Series{
			Step: time.Minute, PromptTokens: []int{0}, CachedTokens: []int{0}, InFlight: [][]float64{{0}},
		},
	}}}
	if text := write(t, r); strings.Contains(text, "NaN") {
		t.Error("the page shows NaN")
	}
	write(t, Report{})
}

func TestManyReplicasAreShownAsABand(t *testing.T) {
	series := &fleet.Series{Step: time.Second, PromptTokens: []int{5, 5}, CachedTokens: []int{1, 2}}
	for i := range mostLines + 1 {
		series.InFlight = append(series.InFlight, []float64{float64(i), 3})
	}
	r := Report{Until: 2 * time.Second, Outcomes: []fleet.Outcome{
		{Row: fleet.Row{Policy: "cache_aware"}, Result: &fleet.Result{}, Series: series},
		{Row: fleet.Row{Policy: fleet.PooledLRU}, Result: &fleet.Result{}, Series: &fleet.Series{
			Step: time.Second, PromptTokens: []int{5, 5}, CachedTokens: []int{5, 5},
		}},
	}}
	text := write(t, r)
	if strings.Contains(text, ": replica 1<") || strings.Contains(text, "thin line") {
		t.Error("each replica has a line")
	}
	if !strings.Contains(text, "least to most of all replicas") {
		t.Error("there is no band")
	}
	if n := strings.Count(text, `<svg class="plot`); n != 3 {
		t.Errorf("%d plots, want 3: a bound has no replicas", n)
	}
}

func TestTableMarksTheBest(t *testing.T) {
	outcome := func(policy string, ttft, hits float64) fleet.Outcome {
		return fleet.Outcome{Row: fleet.Row{Policy: policy, TTFTMean: ttft, HitRate: hits}}
	}
	outcomes := []fleet.Outcome{outcome("a", 0.2, 0.4), outcome("b", 0.1, 0.3), outcome("c", 2.5, 0.4)}
	rows := make([]row, 3)
	for _, c := range columns {
		c.fill(rows, outcomes)
	}
	for i, want := range []struct {
		ttft, hits cell
	}{
		{cell{Text: "200 ms", Ratio: "2.00×"}, cell{Text: "40 %", Best: true}},
		{cell{Text: "100 ms", Best: true}, cell{Text: "30 %"}},
		{cell{Text: "2.50 s", Ratio: "25×"}, cell{Text: "40 %", Best: true}},
	} {
		if got := rows[i].Cells[1]; got != want.ttft {
			t.Errorf("TTFT of %s: %+v, want %+v", outcomes[i].Policy, got, want.ttft)
		}
		if got := rows[i].Cells[6]; got != want.hits {
			t.Errorf("hit rate of %s: %+v, want %+v", outcomes[i].Policy, got, want.hits)
		}
	}
}

func TestAxes(t *testing.T) {
	linear := axis{low: 0, high: 10, from: 100, to: 0}
	if linear.at(2.5) != 75 || linear.at(-5) != 100 || linear.at(99) != 0 {
		t.Error("a linear axis maps wrongly or leaves the plot")
	}
	log := axis{low: 0.01, high: 1, from: 0, to: 100, log: true}
	if math.Abs(log.at(0.1)-50) > 1e-9 || log.at(0) != 0 {
		t.Errorf("a logarithmic axis maps 0.1 to %v and 0 to %v", log.at(0.1), log.at(0))
	}
	var labels []string
	for _, tick := range log.ticks(0, mark) {
		labels = append(labels, tick.Label)
	}
	if got := strings.Join(labels, ","); got != "10 ms,20 ms,50 ms,100 ms,200 ms,500 ms,1 s" {
		t.Errorf("ticks %s", got)
	}
	for _, c := range []struct{ low, high, wantLow, wantHigh float64 }{
		{0.03, 40, 0.02, 50}, {0.05, 0.9, 0.05, 1}, {0, 0, 1e-4, 2e-4},
	} {
		if low, high := logBounds(c.low, c.high); math.Abs(low/c.wantLow-1) > 1e-9 || math.Abs(high/c.wantHigh-1) > 1e-9 {
			t.Errorf("%v to %v is widened to %v and %v, want %v and %v", c.low, c.high, low, high, c.wantLow, c.wantHigh)
		}
	}
}

func TestLinesLeaveGaps(t *testing.T) {
	a := axis{low: 0, high: 4, from: 0, to: 4}
	xs, known := []float64{0, 1, 2, 3}, []bool{true, true, false, true}
	if got := line(a, a, xs, xs, known); got != "M0.0 0.0L1.0 1.0M3.0 3.0" {
		t.Errorf("line %s", got)
	}
	if got := area(a, a, xs[:2], []float64{0, 0}, []float64{1, 2}); got != "M0.0 1.0L1.0 2.0L1.0 0.0L0.0 0.0Z" {
		t.Errorf("area %s", got)
	}
}

func TestOneExtremeDoesNotFlattenTheOthers(t *testing.T) {
	for _, c := range []struct {
		peaks []float64
		want  float64
	}{
		{[]float64{10, 12, 300}, 12}, {[]float64{10, 29, 12}, 29}, {[]float64{5}, 5}, {[]float64{1, 50}, 1}, {nil, 1},
	} {
		if got := sharedPeak(c.peaks); got != c.want {
			t.Errorf("peaks %v share %v, want %v", c.peaks, got, c.want)
		}
	}
}

func TestTimesAreReadable(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		want    string
	}{{0.0012, "1.20 ms"}, {0.0456, "45.6 ms"}, {0.4, "400 ms"}, {0.9996, "1.00 s"}, {13, "13.0 s"}, {240, "240 s"}} {
		if got := seconds(c.seconds); got != c.want {
			t.Errorf("%v s is written %s, want %s", c.seconds, got, c.want)
		}
	}
	for _, c := range []struct {
		seconds float64
		want    string
	}{{0, "0 min"}, {90, "1m30s"}, {600, "10 min"}} {
		if got := minutes(c.seconds); got != c.want {
			t.Errorf("%v s is written %s, want %s", c.seconds, got, c.want)
		}
	}
}
