package load

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestSummarize(t *testing.T) {
	var results []Result
	for i := range 100 {
		results = append(results, Result{
			TTFT: time.Duration(100-i) * time.Second, Total: 200 * time.Second,
			PromptTokens: 100, CachedTokens: 25, Replica: []string{"a", "b", "b", "b"}[i%4],
		})
	}
	results = append(results, Result{Err: errors.New("lost"), PromptTokens: 7})
	got := Summarize("rule", []string{"a", "b", "c"}, results)
	want := Summary{
		Policy: "rule", Requests: 101, Errors: 1, TTFTMean: 50.5, TTFTP50: 50, TTFTP90: 90, TTFTP99: 99,
		E2EMean: 200, HitRate: 0.25, ReplicaShare: []float64{0.25, 0.75, 0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestSummaryOfNothingIsValidJSON(t *testing.T) {
	raw, err := json.Marshal(Summarize("rule", []string{"a"}, []Result{{Err: errors.New("lost")}}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"policy":"rule","requests":1,"errors":1,"ttft_mean_s":0,"ttft_p50_s":0,"ttft_p90_s":0,"ttft_p99_s":0,"e2e_mean_s":0,"hit_rate":0,"replica_share":[0]}`
	if string(raw) != want {
		t.Errorf("got %s\nwant %s", raw, want)
	}
}
