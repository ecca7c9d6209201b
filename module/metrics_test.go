package module

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// gather returns all series of the collectors by name and label values, which
// are in the order of the labels' names.
func gather(t testing.TB) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.Metric {
			key := family.GetName()
			for _, label := range m.Label {
				key += " " + label.GetValue()
			}
			series[key] = valueOf(m)
		}
	}
	return series
}

func valueOf(m *dto.Metric) float64 {
	if m.Counter != nil {
		return m.Counter.GetValue()
	}
	return m.Gauge.GetValue()
}

func TestMetricsTellOfStatesAndReplicas(t *testing.T) {
	p := newTestPolicy(t, "measured", 2)
	p.route(chatOf("the same")).ended(time.Now())
	second := p.route(chatOf("the same"))
	replica := second.booking.Estimate.Replica
	got := gather(t)
	for series, want := range map[string]float64{
		"caddy_cache_aware_replica_requests_total " + replica + " measured":                 2,
		"caddy_cache_aware_replica_prompt_tokens_total false " + replica + " measured":      4504,
		"caddy_cache_aware_replica_promised_hit_tokens_total true " + replica + " measured": 0,
		"caddy_cache_aware_policies measured":                                               1,
		"caddy_cache_aware_decisions_total cold measured":                                   1,
		"caddy_cache_aware_decisions_total prefix measured":                                 1,
		"caddy_cache_aware_decisions_total owner measured":                                  0,
		"caddy_cache_aware_index_limit_bytes measured":                                      float64(p.state.fleet.Index().Limit),
		"caddy_cache_aware_replica_capacity_tokens " + replica + " measured":                selection.DefaultCapacity,
		"caddy_cache_aware_replica_queued_requests " + replica + " measured":                1,
		"caddy_cache_aware_replica_doubted " + replica + " measured":                        0,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s = %v, %v, want %v", series, value, ok, want)
		}
	}
	for series := range got {
		if strings.Contains(series, "_reported_") || strings.Contains(series, "_load_") {
			t.Errorf("%s, but nobody was asked", series)
		}
	}
}

func TestMetricsOfStatesThatAreGoneDisappear(t *testing.T) {
	p := newTestPolicy(t, "passing", 2)
	p.route(chatOf("a"))
	if err := p.Cleanup(); err != nil {
		t.Fatal(err)
	}
	for series := range gather(t) {
		if strings.Contains(series, "passing") {
			t.Errorf("%s is still there", series)
		}
	}
}

// collected runs the collector's part for one replica.
func collected(t *testing.T, r *ReplicaStatus) map[string]float64 {
	t.Helper()
	out := make(chan prometheus.Metric, 100)
	collectReplica(out, r, "s")
	close(out)
	values := make(map[string]float64)
	for m := range out {
		var written dto.Metric
		if err := m.Write(&written); err != nil {
			t.Fatal(err)
		}
		values[nameOf(m.Desc())] = valueOf(&written)
	}
	return values
}

func TestMetricsOfWhatReplicasReport(t *testing.T) {
	report := health.Report{At: time.Now(), Running: 3, Waiting: math.NaN(), KVUsage: 0.5, CapacityTokens: 1000}
	load := showLoad(&health.Status{Engine: "vllm", Failures: 2, Report: report})
	values := collected(t, &ReplicaStatus{selection.ReplicaStatus{Replica: "r"}, load})
	for name, want := range map[string]float64{
		"engine_info": 1, "load_failures": 2, "reported_running_requests": 3,
		"reported_kv_usage_ratio": 0.5, "reported_capacity_tokens": 1000,
	} {
		if got, ok := values["caddy_cache_aware_replica_"+name]; !ok || got != want {
			t.Errorf("%s = %v, %v, want %v", name, got, ok, want)
		}
	}
	if _, told := values["caddy_cache_aware_replica_reported_waiting_requests"]; told {
		t.Error("a number that is not known has a series")
	}
}

func TestReplicaWithoutAValidNameHasNoSeries(t *testing.T) {
	if got := collected(t, &ReplicaStatus{selection.ReplicaStatus{Replica: "\xff"}, nil}); len(got) != 0 {
		t.Errorf("series: %v", got)
	}
}

// nameOf is the full name of a metric, which a description tells only in its text.
func nameOf(d *prometheus.Desc) string {
	_, rest, _ := strings.Cut(d.String(), `fqName: "`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// BenchmarkScrape measures a scrape, in which the fleet's lock is held for the
// time that selection's BenchmarkStatus tells.
func BenchmarkScrape(b *testing.B) {
	for _, replicas := range []int{4, 64, 512} {
		b.Run(fmt.Sprintf("%dreplicas", replicas), func(b *testing.B) {
			p := newTestPolicy(b, "scraped", replicas)
			p.route(chatOf("a")).ended(time.Now())
			for b.Loop() {
				gather(b)
			}
		})
	}
}

// TestReplicaMetricsTellTheirNumber holds which number of a replica's status is behind
// which name.
func TestReplicaMetricsTellTheirNumber(t *testing.T) {
	status := ReplicaStatus{ReplicaStatus: selection.ReplicaStatus{EvictionAge: 1, Pressure: 2, Wait: 3, Utilisation: 4,
		PrefillPace: 5, DecodePace: 6, QueuePace: 7, Arrivals: 8, Prefill: 9, Failing: 10}}
	want := map[string]float64{
		"eviction_age_seconds": 1, "pressure_ratio": 2, "wait_seconds": 3, "utilisation_ratio": 4, "prefill_pace_ratio": 5,
		"decode_pace_ratio": 6, "queue_pace_ratio": 7, "arrivals_per_second": 8, "prefill_seconds": 9,
	}
	for name, want := range want {
		i := slices.IndexFunc(replicaMetrics, func(m statusMetric[ReplicaStatus]) bool {
			return strings.Contains(m.desc.String(), `"caddy_cache_aware_replica_`+name+`"`)
		})
		if i < 0 {
			t.Errorf("no metric %s", name)
		} else if got := replicaMetrics[i].value(&status); got != want {
			t.Errorf("%s is number %g, want %g", name, got, want)
		}
	}
}
