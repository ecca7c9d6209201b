package module

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// statusCollector tells what is known of states and their replicas. It looks
// when it is asked, so requests do nothing for it, and replicas that are gone
// leave no series behind.
type statusCollector struct{}

// Describe sends the descriptions of all metrics.
func (statusCollector) Describe(out chan<- *prometheus.Desc) {
	out <- decisionsMade
	out <- engineInfo
	out <- promptTokens
	out <- promisedTokens
	for _, m := range stateMetrics {
		out <- m.desc
	}
	for _, m := range replicaMetrics {
		out <- m.desc
	}
}

// Collect sends the metrics of all running states.
func (statusCollector) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	for _, s := range runningStates() {
		for reason, n := range s.decisions.byReason() {
			emit(out, decisionsMade, prometheus.CounterValue, float64(n), s.name, string(reason))
		}
		status := s.status(now)
		for _, m := range stateMetrics {
			m.collect(out, &status, s.name)
		}
		for i := range status.Replicas {
			collectReplica(out, &status.Replicas[i], s.name)
		}
	}
}

func collectReplica(out chan<- prometheus.Metric, r *ReplicaStatus, state string) {
	for _, m := range replicaMetrics {
		m.collect(out, r, state, r.Replica)
	}
	for checked, sum := range map[string]*selection.Promises{"true": &r.Checked, "false": &r.Unchecked} {
		emit(out, promptTokens, prometheus.CounterValue, float64(sum.Prompt), state, r.Replica, checked)
		emit(out, promisedTokens, prometheus.CounterValue, float64(sum.Promised), state, r.Replica, checked)
	}
	if r.Load != nil && r.Load.Engine != "" {
		emit(out, engineInfo, prometheus.GaugeValue, 1, state, r.Replica, r.Load.Engine)
	}
}

// statusMetric is one number of a status. NaN stands for a number that is not
// known, of which there is no series.
type statusMetric[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

func (m *statusMetric[S]) collect(out chan<- prometheus.Metric, status *S, labels ...string) {
	emit(out, m.desc, m.kind, m.value(status), labels...)
}

// emit sends one number, unless it is not known. There is no series of a
// replica whose name is no valid label either.
func emit(out chan<- prometheus.Metric, desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	if math.IsNaN(value) {
		return
	}
	if metric, err := prometheus.NewConstMetric(desc, kind, value, labels...); err == nil {
		out <- metric
	}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, metricsSubsystem, name), help, labels, nil)
}

var (
	decisionsMade  = describe("decisions_total", "Requests sent to a replica, retries included, by the reason of the choice.", "state", "reason")
	promptTokens   = describe("replica_prompt_tokens_total", "Prompt tokens of requests that the replica answered, as estimated, by whether the answer said how many of them were cached.", "state", "replica", "checked")
	promisedTokens = describe("replica_promised_hit_tokens_total", "Prompt tokens of requests that the replica answered, expected to be found in its KV cache, by whether the answer said how many were.", "state", "replica", "checked")
	engineInfo     = describe("replica_engine_info", "The inference engine that a replica was found to run, as a label; always 1.", "state", "replica", "engine")
)

func ofState(kind prometheus.ValueType, name, help string, value func(*Status) float64) statusMetric[Status] {
	return statusMetric[Status]{describe(name, help, "state"), kind, value}
}

var stateMetrics = []statusMetric[Status]{
	ofState(prometheus.GaugeValue, "policies", "Policies of running configurations that share the state.",
		func(s *Status) float64 { return float64(s.Policies) }),
	ofState(prometheus.GaugeValue, "index_entries", "Blocks in the index of cached prefixes.",
		func(s *Status) float64 { return float64(s.Index.Entries) }),
	ofState(prometheus.GaugeValue, "index_bytes", "Memory that the index of cached prefixes takes.",
		func(s *Status) float64 { return float64(s.Index.Bytes) }),
	ofState(prometheus.GaugeValue, "index_limit_bytes", "Memory that the index of cached prefixes may take.",
		func(s *Status) float64 { return float64(s.Index.Limit) }),
	ofState(prometheus.CounterValue, "index_refused_total", "Blocks not recorded in the index since its memory was full.",
		func(s *Status) float64 { return float64(s.Index.Refused) }),
	ofState(prometheus.CounterValue, "index_evicted_total", "Blocks that left the index to make room while a replica was believed to hold them.",
		func(s *Status) float64 { return float64(s.Index.Evicted) }),
}

func ofReplica(kind prometheus.ValueType, name, help string, value func(*ReplicaStatus) float64) statusMetric[ReplicaStatus] {
	return statusMetric[ReplicaStatus]{describe("replica_"+name, help, "state", "replica"), kind, value}
}

var replicaMetrics = []statusMetric[ReplicaStatus]{
	ofReplica(prometheus.GaugeValue, "capacity_tokens", "Size of the replica's KV cache, as believed.",
		func(r *ReplicaStatus) float64 { return float64(r.Capacity) }),
	ofReplica(prometheus.GaugeValue, "resident_tokens", "Tokens that the replica's KV cache is believed to hold.",
		func(r *ReplicaStatus) float64 { return float64(r.Resident) }),
	ofReplica(prometheus.GaugeValue, "doubted", "1 if the replica may have lost its cache, else 0.",
		func(r *ReplicaStatus) float64 { return truth(r.Doubted) }),
	ofReplica(prometheus.GaugeValue, "eviction_age_seconds", "Time for which what the replica evicts next has not been used, 0 while its cache has room.",
		func(r *ReplicaStatus) float64 { return r.EvictionAge }),
	ofReplica(prometheus.GaugeValue, "pressure_ratio", "How many times as much prefill costs on the replica for what it evicts.",
		func(r *ReplicaStatus) float64 { return r.Pressure }),
	ofReplica(prometheus.GaugeValue, "queued_requests", "Requests sent to the replica whose prefill is not known to be done.",
		func(r *ReplicaStatus) float64 { return float64(r.Queued) }),
	ofReplica(prometheus.GaugeValue, "running_requests", "Requests sent to the replica that are past their prefill.",
		func(r *ReplicaStatus) float64 { return float64(r.Running) }),
	ofReplica(prometheus.GaugeValue, "context_tokens", "Prompt tokens of the requests at the replica.",
		func(r *ReplicaStatus) float64 { return float64(r.Context) }),
	ofReplica(prometheus.GaugeValue, "prefill_seconds", "Prefill work sent to the replica and not known to be done.",
		func(r *ReplicaStatus) float64 { return r.Prefill }),
	ofReplica(prometheus.GaugeValue, "wait_seconds", "Time until the replica could begin another prefill.",
		func(r *ReplicaStatus) float64 { return r.Wait }),
	ofReplica(prometheus.GaugeValue, "arrivals_per_second", "Requests sent to the replica per second, averaged over about half a minute.",
		func(r *ReplicaStatus) float64 { return r.Arrivals }),
	ofReplica(prometheus.GaugeValue, "utilisation_ratio", "Share of its time that the replica spends on prefill sent to it, averaged over about half a minute.",
		func(r *ReplicaStatus) float64 { return r.Utilisation }),
	ofReplica(prometheus.GaugeValue, "prefill_pace_ratio", "Time that the replica takes for a prefill, to the usual time.",
		func(r *ReplicaStatus) float64 { return r.PrefillPace }),
	ofReplica(prometheus.GaugeValue, "decode_pace_ratio", "Time that the replica takes to decode, to the usual time.",
		func(r *ReplicaStatus) float64 { return r.DecodePace }),
	ofReplica(prometheus.GaugeValue, "queue_pace_ratio", "Time that the replica takes to work off its queue, to that of the prefills in it.",
		func(r *ReplicaStatus) float64 { return r.QueuePace }),
	ofReplica(prometheus.GaugeValue, "slots", "Requests that the replica runs at once, 0 when no limit is known.",
		func(r *ReplicaStatus) float64 { return float64(r.Slots) }),
	ofReplica(prometheus.GaugeValue, "trust_ratio", "Share that answers find of what the replica is surely expected to hold.",
		func(r *ReplicaStatus) float64 { return r.Sure }),
	ofReplica(prometheus.GaugeValue, "foreign_running_requests", "Requests running on the replica that did not come through here.",
		func(r *ReplicaStatus) float64 { return r.ForeignRunning }),
	ofReplica(prometheus.GaugeValue, "foreign_waiting_requests", "Requests waiting on the replica that did not come through here.",
		func(r *ReplicaStatus) float64 { return r.ForeignWaiting }),
	ofReplica(prometheus.GaugeValue, "failing_seconds", "Price that the replica's recent failures add to its cost.",
		func(r *ReplicaStatus) float64 { return r.Failing }),

	ofReplica(prometheus.CounterValue, "requests_total", "Requests sent to the replica, retries included.",
		func(r *ReplicaStatus) float64 { return float64(r.Booked) }),
	ofReplica(prometheus.CounterValue, "confirmed_hit_tokens_total", "Prompt tokens found in the replica's KV cache, by the word of its answers.",
		func(r *ReplicaStatus) float64 { return float64(r.Checked.Confirmed) }),

	ofReplica(prometheus.GaugeValue, "load_failures", "Polls of the replica's load that failed in a row.",
		func(r *ReplicaStatus) float64 { return r.Load.failures() }),
	ofReplica(prometheus.GaugeValue, "reported_running_requests", "Requests that run on the replica, as it says.",
		func(r *ReplicaStatus) float64 { return r.Load.report().Running }),
	ofReplica(prometheus.GaugeValue, "reported_waiting_requests", "Requests that wait at the replica, as it says.",
		func(r *ReplicaStatus) float64 { return r.Load.report().Waiting }),
	ofReplica(prometheus.GaugeValue, "reported_kv_usage_ratio", "Share of the replica's KV cache that live requests hold, as it says.",
		func(r *ReplicaStatus) float64 { return r.Load.report().KVUsage }),
	ofReplica(prometheus.GaugeValue, "reported_capacity_tokens", "Size of the replica's KV cache, as it says.",
		func(r *ReplicaStatus) float64 { return r.Load.report().CapacityTokens }),
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
