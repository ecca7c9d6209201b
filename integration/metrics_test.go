package integration

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
)

// unread returns the counter of unread requests by reason, as Caddy reports it.
func unread(t *testing.T) map[string]float64 {
	t.Helper()
	ctx := caddy.ActiveContext()
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]float64)
	for _, family := range families {
		if family.GetName() != "caddy_cache_aware_unread_requests_total" {
			continue
		}
		for _, metric := range family.Metric {
			counts[metric.Label[0].GetValue()] = metric.Counter.GetValue()
		}
	}
	return counts
}

func TestUnreadRequestsAreCountedByReason(t *testing.T) {
	r := newRig(t, 2, engine.Options{}, "", "")
	before := unread(t)
	requests := []struct {
		method, path, body, header, reason string
	}{
		{"GET", "/v1/models", "", "Accept: */*", "no_body"},
		{"POST", chatPath, "", "Accept: */*", "no_body"},
		{"POST", chatPath, "--x", "Content-Type: multipart/form-data; boundary=x", "not_json"},
		{"POST", chatPath, `{"messages":[}`, "Accept: */*", "malformed"},
		{"POST", "/v1/other", `{"a":1}`, "Accept: */*", "unknown_api"},
		{"POST", chatPath, `{"model":"simulated"}`, "Accept: */*", "no_prompt"},
		{"POST", chatPath, `{"prompt":"not compressed"}`, "Content-Encoding: gzip", "bad_encoding"},
	}
	want := make(map[string]float64)
	for _, c := range requests {
		if a := r.request(c.method, c.path, c.body, c.header); a.Reason != "load" {
			t.Errorf("%s: routed for %s", c.reason, a.Reason)
		}
		want[c.reason]++
	}
	r.send(t.Context(), chat{System: text(1, 100), User: "x", MaxTokens: 1})
	r.load() // a reload counts on
	after := unread(t)
	for reason, n := range want {
		if got := after[reason] - before[reason]; got != n {
			t.Errorf("%s: counted %v, want %v", reason, got, n)
		}
	}
	if len(after) != len(want) {
		t.Errorf("counters: %v", after)
	}
}

func TestScrapedMetrics(t *testing.T) {
	r := newAdminRig(t, 2, "")
	c := chat{System: text(1, 4000), User: "one", MaxTokens: 8}
	first := r.send(t.Context(), c)
	r.load()
	r.send(t.Context(), c)
	page := r.scrape()
	replica := `{replica="` + first.Replica + `",state="default"}`
	for _, want := range []string{
		`caddy_cache_aware_decisions_total{reason="cold",state="default"} 1`,
		`caddy_cache_aware_decisions_total{reason="prefix",state="default"} 1`,
		`caddy_cache_aware_policies{state="default"} 1`,
		"caddy_cache_aware_replica_running_requests" + replica + " 0",
		"caddy_cache_aware_replica_wait_seconds" + replica + " 0",
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
}

// scrape returns our metrics as Caddy's admin endpoint tells them, and checks
// that they are as Prometheus would like them.
func (r *rig) scrape() string {
	r.t.Helper()
	status, page := r.ask("GET", "/metrics", "")
	if status != 200 {
		r.t.Fatalf("status %d, %s", status, page)
	}
	var ours strings.Builder
	for line := range strings.Lines(page) {
		if strings.Contains(line, "caddy_cache_aware_") {
			ours.WriteString(line)
		}
	}
	problems, err := promlint.New(strings.NewReader(ours.String())).Lint()
	if err != nil || len(problems) > 0 {
		r.t.Errorf("%v %+v in\n%s", err, problems, ours.String())
	}
	return ours.String()
}
