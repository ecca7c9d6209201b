package fleet

import (
	"testing"
	"time"
)

// A replica that joins with an empty cache is used and not stampeded, and first
// tokens come sooner for it than under the rule that takes the least pending work.
func TestRoutingToANewcomer(t *testing.T) {
	byVolume(t)
	// Documents are left out: one replica of eight comes to serve short prompts
	// only, of which it has more than its share.
	workloads := []string{"150-prefixes", "tool-heavy"}
	if *learning {
		workloads = append(workloads, "no-reuse", "hotspot", "coding-agents")
	}
	for _, name := range workloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first, early, late, slowest, mean figures
			for _, seed := range routingSeeds() {
				own, least := join(t, OwnPolicy, name, seed), join(t, "pending-uncached", name, seed)
				first = append(first, own.first)
				early, late = append(early, own.early), append(late, own.late)
				slowest, mean = append(slowest, own.slowest/least.slowest), append(mean, own.mean/least.mean)
			}
			least, leastEarly := 0.1, 0.4
			if name == "coding-agents" {
				least, leastEarly = 0, 0.15 // conversations of minutes stay, and new ones go there
			}
			within(t, name+": requests of the newcomer's first seconds, mean = 1", first.mean(), least, 3)
			within(t, name+": requests of the newcomer's first minute, mean = 1", early.mean(), leastEarly, 1.6)
			within(t, name+": requests of the newcomer after that, mean = 1", late.mean(), 0.7, 1.4)
			bar(t, name+": mean TTFT of all in that minute, least work = 1", mean.geometric(), 1.1)
			// That rule hardly uses the newcomer, here it computes every prefix once.
			bar(t, name+": p99 TTFT of all in it, least work = 1", slowest.geometric(), 3)
		})
	}
}

// newcomer is how it went with a replica that joined.
type newcomer struct {
	// Requests in its first five seconds, in its first minute and after that, mean
	// of all = 1.
	first, early, late float64
	// Times to first token of all in that minute: mean and p99.
	mean, slowest float64
}

// join lets the last of eight replicas join at half time.
func join(t *testing.T, policy, workload string, seed uint64) newcomer {
	t.Helper()
	const at, end, last = 2 * time.Minute, 4 * time.Minute, 7
	o := scenario(t, workload, 0.7, seed, end)
	o.Events = []Event{{At: at, Kind: Join, Replica: last}}
	samples := recordUnder(t, policy, o, seed)
	allFirst, ownFirst := placed(samples, at, at+5*time.Second)
	all, own := placed(samples, at, at+time.Minute)
	allLater, ownLater := placed(samples, at+time.Minute, end)
	share := func(own, all []time.Duration) float64 { return 8 * float64(len(own)) / float64(len(all)) }
	return newcomer{
		first: share(ownFirst[last], allFirst),
		early: share(own[last], all), late: share(ownLater[last], allLater),
		mean: Mean(all), slowest: (&Result{TTFT: all}).Quantile(0.99),
	}
}

// placed are the times to first token of the requests that arrived in a time, of
// all and by replica.
func placed(samples []sample, from, until time.Duration) (all []time.Duration, by map[int][]time.Duration) {
	by = map[int][]time.Duration{}
	for _, s := range samples {
		if s.arrived >= from && s.arrived < until {
			all = append(all, s.ttft)
			by[s.replica] = append(by[s.replica], s.ttft)
		}
	}
	return all, by
}
