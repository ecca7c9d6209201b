package module

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// words joins what stands between runs of spaces, line by line.
func words(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestStatusIsPrintedAsATable(t *testing.T) {
	unknown := math.NaN()
	asked := LoadStatus{Engine: "vllm", Report: &health.Report{Sleeping: true, PrefixCaching: health.Off, Running: unknown}}
	list := []Status{
		{Name: "a", Policies: 1, Index: IndexStatus{Entries: 12_345, Bytes: 3 << 20, Limit: 256 << 20}, Replicas: []ReplicaStatus{
			{selection.ReplicaStatus{Replica: "r0:1", Resident: 1234, Capacity: 400_000, Source: "assumed", ForeignRunning: 3, PrefillPace: 3, DecodePace: 1.1, Queued: 1, Running: 2, Wait: 0.25, Utilisation: 0.5, Pressure: 1, Failing: 1e-9}, &asked},
			{selection.ReplicaStatus{Replica: "r1:1", Doubted: true, Pressure: 1, Failing: 12}, &LoadStatus{Failures: 3, Error: "refused"}},
			{selection.ReplicaStatus{Replica: "r2:1", Wait: 0.0012, Pressure: 1.25}, nil},
		}},
		{Name: "b", Policies: 2},
	}
	var out bytes.Buffer
	if err := printStatuses(&out, list); err != nil {
		t.Fatal(err)
	}
	want := `a: 1 policy, index of 12,345 blocks in 3.0 MiB of 256 MiB
REPLICA ENGINE CACHED TOKENS CAPACITY QUEUED RUNNING WAIT BUSY PRESSURE NOTES
r0:1 vllm 1,234 400,000 assumed 1 2 250 ms 50 % 1.00 3 requests of others; prefill takes 3.0 times the usual time; sleeping; prefix caching is off
r1:1 - 0 0 0 0 0 ms 0 % 1.00 failing, costs 12.0 s more; may have lost its cache; does not report its load: refused
r2:1 - 0 0 0 0 1.2 ms 0 % 1.25

b: 2 policies, index of 0 blocks in 0 B of 0 B
no replica is known yet`
	if got := words(out.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := printStatuses(&out, nil); err != nil || out.String() != "no cache_aware policy is running\n" {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestExplanationIsPrintedAsATable(t *testing.T) {
	candidates := []Candidate{{Replica: "r0:1", Matched: 4000, Uncached: 100, Wait: 1500, Prefill: 12.3, Factor: 1.5, Decode: 20_000, Cost: 7518}}
	for name, test := range map[string]struct {
		explanation Explanation
		want        string
	}{
		"prompt": {
			Explanation{Candidates: candidates, Understood: Understood{
				API: "chat", Model: "m\x1b[", Adapter: "l", PromptTokens: 4100, Blocks: 1, MaxTokens: 9, Stream: true, Truncated: true,
			}},
			`chat request: 4,100 prompt tokens in 1 block, model "m\x1b[", adapter "l", at most 9 tokens of answer, streamed, only the beginning was read
REPLICA MATCHED UNCACHED WAIT PREFILL FACTOR DECODE FAILING COST
r0:1 4,000 100 1.50 s 12 ms 1.50 20.0 s 0 ms 7.52 s`,
		},
		"unread":  {Explanation{Understood: Understood{Unread: "not_json"}}, "no prompt could be read (not_json), so only load counts\nno replica is known yet"},
		"session": {Explanation{Understood: Understood{Unread: "no_prompt", Hints: 1}}, "no prompt could be read (no_prompt), but the request names a session\nno replica is known yet"},
		"owner":   {Explanation{Owner: "r1:1", Understood: Understood{API: "responses"}}, "responses request: 0 prompt tokens in 0 blocks\ngoes to r1:1, which keeps the response or conversation that it names\nno replica is known yet"},
	} {
		var out bytes.Buffer
		if err := printExplanation(&out, &test.explanation); err != nil {
			t.Fatal(err)
		}
		if got := words(out.String()); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}
