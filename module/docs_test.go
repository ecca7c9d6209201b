package module

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed5db0839e/caddy-cache-aware/health"
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

// TestAdminIsDocumented checks that the examples are answers of the admin API,
// and that every field of an answer is named.
func TestAdminIsDocumented(t *testing.T) {
	read, err := os.ReadFile("../docs/admin.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(read)
	answers := []any{new(statusAnswer), new(decisionsAnswer), new(Explanation)}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) != len(answers) {
		t.Fatalf("%d examples of %d answers", len(examples), len(answers))
	}
	for i, example := range examples {
		decoder := json.NewDecoder(strings.NewReader(example[1]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(answers[i]); err != nil {
			t.Errorf("%T: %v", answers[i], err)
		}
		for _, name := range jsonNames(reflect.TypeOf(answers[i])) {
			if !strings.Contains(text, name+"`") && !strings.Contains(text, `"`+name+`"`) {
				t.Errorf("%T: %s is not documented", answers[i], name)
			}
		}
	}
}

// jsonNames lists the names of all fields that a type has in JSON.
func jsonNames(of reflect.Type) (names []string) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		return jsonNames(of.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	if of == reflect.TypeFor[health.Report]() {
		return nil // the engine's numbers
	}
	for i := range of.NumField() {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
		names = append(names, jsonNames(of.Field(i).Type)...)
	}
	return names
}
