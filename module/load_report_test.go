package module

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// TestReportIsCopiedWhole gives every quantity a value of its own and looks for
// it under the same name.
func TestReportIsCopiedWhole(t *testing.T) {
	var from health.Report
	source := reflect.ValueOf(&from).Elem()
	for i := range source.NumField() {
		if field := source.Field(i); field.Kind() == reflect.Float64 {
			field.SetFloat(float64(i + 1))
		}
	}
	to := reportOf(&from)
	copied := reflect.ValueOf(to)
	for i := range copied.NumField() {
		name := copied.Type().Field(i).Name
		if copied.Field(i).Kind() != reflect.Float64 {
			continue
		}
		if same := source.FieldByName(name); !same.IsValid() {
			t.Errorf("no quantity of a replica's report is called %s", name)
		} else if got, want := copied.Field(i).Float(), same.Float(); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}

func TestReportOfStates(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		from health.Report
		want selection.Report
	}{
		"plain":            {health.Report{At: at}, selection.Report{At: at}},
		"restarted":        {health.Report{Restarted: true}, selection.Report{Restarted: true}},
		"sleeping":         {health.Report{Sleeping: true}, selection.Report{Sleeping: true}},
		"prefix cache on":  {health.Report{PrefixCaching: health.On}, selection.Report{}},
		"prefix cache off": {health.Report{PrefixCaching: health.Off}, selection.Report{NoPrefixCaching: true}},
		"private slots":    {health.Report{PrivateSlots: true}, selection.Report{PrivateSlots: true}},
		"prefix cache not told": {
			health.Report{PrefixCaching: health.Unknown}, selection.Report{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reportOf(&test.from); got != test.want {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestUntoldStaysUntold(t *testing.T) {
	report := reportOf(&health.Report{Running: 3, Waiting: math.NaN(), CapacityTokens: math.NaN()})
	if report.Running != 3 || selection.Known(report.Waiting) || selection.Known(report.CapacityTokens) {
		t.Errorf("got %+v", report)
	}
}

// reportOfNothing is the report of a replica that tells nothing.
func reportOfNothing() selection.Report {
	var report selection.Report
	fields := reflect.ValueOf(&report).Elem()
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() == reflect.Float64 {
			field.SetFloat(math.NaN())
		}
	}
	return report
}
