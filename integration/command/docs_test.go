package command

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// TestSimulateIsDocumented compares the tables of docs/simulate.md with what there
// is, both ways.
func TestSimulateIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	var workloads []string
	for _, s := range fleet.Scenarios() {
		workloads = append(workloads, s.Name)
	}
	for heading, names := range map[string][]string{
		"## Workloads": workloads, "## Policies": fleet.Policies(), "## Profiles": profileNames(),
	} {
		_, section, found := strings.Cut(string(text), heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var documented []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
			documented = append(documented, row[1])
		}
		slices.Sort(documented)
		if names = slices.Sorted(slices.Values(names)); !found || !slices.Equal(documented, names) {
			t.Errorf("%s documents %q, there are %q", heading, documented, names)
		}
	}
	for _, flag := range regexp.MustCompile(`--[a-z]+`).FindAllString(simulateCommand().Flags().FlagUsages(), -1) {
		if !strings.Contains(string(text), "`"+flag) {
			t.Errorf("%s is not documented", flag)
		}
	}
	for _, name := range fleet.Names() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is not documented", name)
		}
	}
}
