package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/load"
	"github.com/seed5db0839e/caddy-cache-aware/integration/proxy"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
	"github.com/seed5db0839e/caddy-cache-aware/internal/loopback"
)

// demo is one comparison of policies: the replicas and the proxy of the policy
// that is measured, and where to tell of it.
type demo struct {
	out, progress io.Writer
	json, keep    bool

	policies []string
	traffic  *workload.Workload
	profile  engine.Profile
	slow     float64 // factor on the replicas' times

	replicas []*engine.Server
	proxy    *proxy.Proxy // nil unless running
	admin    string       // address of its admin endpoint, if it is kept running
}

func newDemo(out, progress io.Writer) *demo {
	return &demo{
		out: out, progress: progress, policies: demoPolicies,
		traffic: demoTraffic.Workload(demoSeed), profile: demoProfile(), slow: 1,
	}
}

// replicaHeader is the response header in which the proxy names the replica.
const replicaHeader = "X-Replica"

// measure sends the traffic through a fresh proxy and fresh replicas, which it
// leaves running.
func (d *demo) measure(ctx context.Context, policy string) (load.Summary, error) {
	d.stop()
	if err := d.start(policy); err != nil {
		return load.Summary{}, err
	}
	bar := newProgress(d.progress, policy, d.traffic.Requests())
	client := load.Client{URL: d.proxy.URL, ReplicaHeader: replicaHeader, Limit: demoLimit, Progress: bar.show}
	results := client.Run(ctx, d.traffic)
	summary := load.Summarize(policy, d.addresses(), results)
	if ctx.Err() == nil {
		bar.end(summary, firstError(results))
	}
	return summary, nil
}

func firstError(results []load.Result) error {
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

func (d *demo) start(policy string) error {
	for range demoReplicas {
		// Few, large events keep the cost of streaming off the measurement.
		replica, err := engine.Start(engine.Options{Profile: d.profile, StreamInterval: 8})
		if err != nil {
			return err
		}
		replica.Slow(d.slow)
		d.replicas = append(d.replicas, replica)
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		return err
	}
	if d.keep {
		if d.admin, err = loopback.FreeAddress(); err != nil {
			return err
		}
	}
	d.proxy, err = proxy.Start(proxy.Options{Address: address, Admin: d.admin, Site: d.site(policy)})
	return err
}

func (d *demo) site(policy string) string {
	return fmt.Sprintf("reverse_proxy %s {\n\tlb_policy %s\n\theader_down %s {http.reverse_proxy.upstream.hostport}\n}",
		strings.Join(d.addresses(), " "), policy, replicaHeader)
}

func (d *demo) addresses() (all []string) {
	for _, replica := range d.replicas {
		all = append(all, replica.Addr())
	}
	return all
}

// stop ends the proxy and the replicas, if any are running.
func (d *demo) stop() {
	if d.proxy != nil {
		_ = proxy.Stop() // always nil
		d.proxy = nil
	}
	for _, replica := range d.replicas {
		_ = replica.Close() // always nil
	}
	d.replicas = nil
}
