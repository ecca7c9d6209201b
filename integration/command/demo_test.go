package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/load"
)

// quick is a demo that runs at several times the speed.
func quick(out, progress io.Writer, sessions int, slow float64) *demo {
	traffic := demoTraffic
	traffic.Users, traffic.Sessions = sessions, sessions
	traffic.Think = time.Duration(slow * float64(traffic.Think))
	traffic.Ramp = time.Duration(slow * float64(traffic.Ramp))
	d := newDemo(out, progress)
	d.traffic, d.slow = traffic.Workload(demoSeed), slow
	return d
}

// TestCacheAwareWinsTheDemo runs the demo's own traffic at twice the speed.
func TestCacheAwareWinsTheDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	d := quick(io.Discard, io.Discard, demoTraffic.Sessions, 0.5)
	defer d.stop()
	results := map[string]load.Summary{}
	for _, policy := range d.policies {
		summary, err := d.measure(t.Context(), policy)
		if err != nil {
			t.Fatal(err)
		}
		if summary.Errors != 0 || summary.Requests != d.traffic.Requests() {
			t.Errorf("%s: %d errors in %d requests, want none in %d", policy, summary.Errors, summary.Requests, d.traffic.Requests())
		}
		t.Logf("%+v", summary)
		results[policy] = summary
	}
	ours := results["cache_aware"]
	for _, other := range []string{"round_robin", "least_conn"} {
		o := results[other]
		sooner := ours.TTFTMean < o.TTFTMean || raceDetector
		if !sooner || ours.HitRate <= o.HitRate {
			t.Errorf("cache_aware: TTFT %.3f s, hit rate %.2f; %s: %.3f s, %.2f", ours.TTFTMean, ours.HitRate, other, o.TTFTMean, o.HitRate)
		}
	}
	checkWork(t, d)
}

// checkWork fails if a replica had more than twice its share of the uncached work.
func checkWork(t *testing.T, d *demo) {
	t.Helper()
	var all []int
	total := 0
	for _, replica := range d.replicas {
		n := replica.Stats().ComputedTokens
		all = append(all, n)
		total += n
	}
	t.Logf("tokens computed: %v", all)
	for _, n := range all {
		if n > 2*total/len(all) {
			t.Errorf("tokens computed: %v, of which one is more than twice its share", all)
		}
	}
}

func TestDemoPrintsATable(t *testing.T) {
	var out, progress bytes.Buffer
	if err := quick(&out, &progress, 4, 0.02).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(rows) != 7 {
		t.Fatalf("%d rows:\n%s", len(rows), out.String())
	}
	for i, policy := range demoPolicies {
		if row := rows[1+i]; !strings.HasPrefix(strings.TrimSpace(row), policy) || strings.Count(row, "/") != 3 {
			t.Errorf("row of %s: %s", policy, row)
		}
		if !strings.Contains(progress.String(), policy+" ") {
			t.Errorf("no progress of %s in %q", policy, progress.String())
		}
	}
}

func TestDemoPrintsJSONAndNothingElse(t *testing.T) {
	var out bytes.Buffer
	d := quick(&out, io.Discard, 4, 0.02)
	d.json = true
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var results []map[string]any
	if err := json.Unmarshal(out.Bytes(), &results); err != nil || len(results) != 3 {
		t.Fatalf("%d results, error %v:\n%s", len(results), err, out.String())
	}
	for i, r := range results {
		if r["policy"] != demoPolicies[i] {
			t.Errorf("result %d is that of %v", i, r["policy"])
		}
		for _, field := range []string{
			"requests", "errors", "ttft_mean_s", "ttft_p50_s", "ttft_p90_s", "ttft_p99_s", "e2e_mean_s", "hit_rate", "replica_share",
		} {
			if _, ok := r[field]; !ok {
				t.Errorf("result of %v has no %s", r["policy"], field)
			}
		}
	}
}

// TestDemoKeepsRunningUntilInterrupted also checks that nothing listens any more
// in the end, but for the admin endpoint, which Caddy closes with its process.
func TestDemoKeepsRunningUntilInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	told, progress := io.Pipe()
	d := quick(io.Discard, progress, 4, 0.02)
	d.keep = true
	done := make(chan error, 1)
	go func() { done <- d.run(ctx) }()
	invitation := readUntil(t, told, "Ctrl-C")
	_, rest, _ := strings.Cut(invitation, "curl -i ")
	url, _, _ := strings.Cut(rest, " ")
	body := strings.NewReader(`{"messages":[{"role":"user","content":"Hello"}],"max_tokens":20}`)
	response, err := http.Post(url, "application/json", body)
	if err != nil {
		t.Fatalf("%v, invited by %q", err, invitation)
	}
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
	_, rest, _ = strings.Cut(invitation, "status --address ")
	admin, _, _ := strings.Cut(rest, "\n")
	if response, err = http.Get("http://" + admin + "/cache_aware/"); err != nil {
		t.Fatalf("%v, invited by %q", err, invitation)
	}
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %d of the admin endpoint", response.StatusCode)
	}
	addresses := append(d.addresses(), strings.TrimPrefix(d.proxy.URL, "http://"))
	go func() { _, _ = io.Copy(io.Discard, told) }()
	interrupt()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, address := range addresses {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			t.Errorf("something still listens at %s", address)
		}
	}
}

func readUntil(t *testing.T, from io.Reader, text string) string {
	t.Helper()
	var all strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(all.String(), text) {
		n, err := from.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
	}
	return all.String()
}

func TestInterruptedDemoIsAnError(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer interrupt()
	var out bytes.Buffer
	if err := quick(&out, io.Discard, 40, 1).run(ctx); err == nil || out.Len() > 0 {
		t.Errorf("error %v, output %q, want an error and none", err, out.String())
	}
}

// TestDemoWritesNothingToDisk runs the demo in a process of its own, whose home is
// an empty folder.
func TestDemoWritesNothingToDisk(t *testing.T) {
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoPrintsATable$")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "AppData="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) > 0 {
		t.Errorf("home holds %v, error %v", entries, err)
	}
}
