package module

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestMetricsAreDocumented compares names, types and labels of all metrics
// with the tables of their documentation, both ways.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(caddy_[a-z_]+)` \\| (\\w+) \\| ([^|]+) \\| [^|]+ \\| [^|]+ \\|$")
	var documented, registered []string
	for _, cells := range row.FindAllStringSubmatch(string(text), -1) {
		labels := strings.ReplaceAll(strings.ReplaceAll(cells[3], "`", ""), " ", "")
		documented = append(documented, fmt.Sprint(cells[1], " ", cells[2], " ", labels))
	}
	for _, d := range descriptions() {
		registered = append(registered, describeInWords(d))
	}
	slices.Sort(documented)
	slices.Sort(registered)
	if len(registered) == 0 || !slices.Equal(documented, registered) {
		t.Errorf("documented:\n%s\nregistered:\n%s", strings.Join(documented, "\n"), strings.Join(registered, "\n"))
	}
}

func descriptions() (all []*prometheus.Desc) {
	for _, collector := range collectors {
		out := make(chan *prometheus.Desc, 100)
		collector.Describe(out)
		close(out)
		for d := range out {
			all = append(all, d)
		}
	}
	return all
}

// describeInWords is name, type and labels of a metric. What ends in _total is
// a counter, and nothing else is: the linter sees to that.
func describeInWords(d *prometheus.Desc) string {
	kind := "gauge"
	if strings.HasSuffix(nameOf(d), "_total") {
		kind = "counter"
	}
	_, labels, _ := strings.Cut(d.String(), "variableLabels: {")
	labels, _, _ = strings.Cut(labels, "}")
	return fmt.Sprint(nameOf(d), " ", kind, " ", labels)
}
