package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

func init() {
	caddy.RegisterModule(new(CacheAware))
}

// CacheAware is a selection policy for LLM inference servers. It sends each
// request to the replica where it is expected to finish first at the least
// cost to everybody else, weighing how much of the prompt's prefix each
// replica's KV cache still holds, how much work is queued there, what
// computing the rest of the prompt takes and what it would evict.
//
// It needs no settings. Requests that carry no prompt go to the replica with
// the least work.
//
// Placeholders, set when a replica has been chosen:
//
// Placeholder | Description
// ------------|------------
// `{http.reverse_proxy.cache_aware.model}` | The model that the request names
// `{http.reverse_proxy.cache_aware.prompt_tokens}` | Estimated length of the prompt in tokens
// `{http.reverse_proxy.cache_aware.matched_tokens}` | How many of them the chosen replica is expected to hold
// `{http.reverse_proxy.cache_aware.reason}` | Why it was chosen: prefix, hint, owner, spread, cold, load, only or fallback
// `{http.reverse_proxy.cache_aware.estimate_ms}` | Expected time to first token in milliseconds
//
// The access log gets the same values in the object `cache_aware`, and
// `ttft_ms` and `confirmed_tokens` when they are known.
type CacheAware struct {
	// Which shared state to use: what is known of replicas outlives
	// configuration reloads, and policies of the same name share it. Give
	// policies different names to keep their knowledge apart, for example when
	// they reach the same addresses through different tunnels.
	// Default: one state for all.
	Name string `json:"name,omitempty"`

	// Which engine the replicas run: vllm, sglang, llamacpp, trtllm, tgi, lmdeploy
	// or ollama. It says where they tell their load and capacity, and how to read
	// it. `auto` finds out from the answers of each replica; `none` asks for
	// nothing and relies on what passes through the proxy. Default: auto.
	Engine string `json:"engine,omitempty"`

	// The path, and query if any, of the page where replicas tell their load,
	// when it is not where the engine has it. Default: where the engine has it.
	LoadURI string `json:"load_uri,omitempty"`

	// How often each replica is asked for its load. The requests go through the
	// proxy's transport, with its TLS settings, and carry the header fields that
	// the proxy sets. A replica that does not answer within 2s is asked less
	// and less often, up to every 30th time. 0 turns asking off; the answers of
	// active health checks that go to the same page count nevertheless. At least
	// 10ms. Default: 1s.
	LoadInterval *caddy.Duration `json:"load_interval,omitempty"`

	// The size of one replica's KV cache in tokens, for replicas that do not tell
	// it or tell it wrong. 0 means automatic: what the replica tells, or 400,000,
	// which is about an 8B model on one 80 GB GPU. A size that is wrong by a
	// factor of two costs time to first token until answers have corrected it;
	// under one that is less than half of what passes between two uses of a prefix,
	// nothing is remembered that could correct it. At least 1024. Default: 0.
	CacheCapacity int `json:"cache_capacity,omitempty"`

	// How many bytes the index of cached prefixes may take. When it is too
	// small for the fleet, prefixes are forgotten early and found less often.
	// Policies that share a state share its index; the first one loaded decides
	// on its size, which stays the same over reloads. At least 16 MiB; 0 means
	// the default. Default: 256 MiB.
	IndexMemory int64 `json:"index_memory,omitempty"`

	// How many bytes of a request body are read to find the prompt. Longer
	// bodies are routed by their beginning, and stream on to the replica; they
	// can be retried only as long as none of the rest has been sent. Bodies up
	// to this size are held in memory until the replica answers. At most
	// 512 MiB, which is what all bodies together may take; 0 means the default.
	// Default: 8 MiB.
	MaxPrompt int64 `json:"max_prompt,omitempty"`

	// Request headers that name a session or conversation, as many clients send
	// one. A request whose prompt cannot be read goes where the one before with
	// the same value of one of these headers went, unless that replica is busier
	// than its cache is worth; about 1,024 tokens are assumed to be cached there.
	// Values are matched exactly. Of several headers the first that is known
	// counts. Default: none.
	SessionHeader []string `json:"session_header,omitempty"`

	// A text with placeholders, such as `{http.auth.user.id}`, whose value tells
	// tenants apart: of prompts, sessions and stored responses, what one tenant
	// sent is never taken for what another one sent. The engines need a
	// `cache_salt` in the requests to keep caches apart themselves. Requests
	// for which the value is empty are one tenant. Default: all are one tenant.
	IsolateBy string `json:"isolate_by,omitempty"`

	// The selection policy for requests that carry no prompt, or none that
	// could be read. Default: the replica with the least work booked.
	FallbackRaw json.RawMessage `json:"fallback,omitempty" caddy:"namespace=http.reverse_proxy.selection_policies inline_key=policy"`

	// Adds a response header `Cache-Aware` that explains the choice: upstream,
	// matched and prompt tokens, reason and estimates. It shows addresses and
	// load to clients. Default: false.
	Explain bool `json:"explain,omitempty"`

	fallback reverseproxy.Selector
	state    *state
	acquired bool // a share of state, until Cleanup
	load     *loadWatch
	// transport is the handler's if it was made here, else nil.
	transport *reverseproxy.HTTPTransport
	logger    *zap.Logger
}

const (
	defaultName        = "default"
	defaultIndexMemory = 256 << 20
	defaultMaxPrompt   = 8 << 20
)

// CaddyModule returns the Caddy module information.
func (*CacheAware) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.reverse_proxy.selection_policies.cache_aware",
		New: func() caddy.Module { return new(CacheAware) },
	}
}

// Provision sets up the policy.
func (c *CacheAware) Provision(ctx caddy.Context) error {
	c.logger = ctx.Logger()
	if err := c.setDefaults(); err != nil {
		return err
	}
	if c.FallbackRaw != nil {
		fallback, err := ctx.LoadModule(c, "FallbackRaw")
		if err != nil {
			return fmt.Errorf("loading fallback selection policy: %w", err)
		}
		c.fallback = fallback.(reverseproxy.Selector)
	}
	if err := registerMetrics(ctx); err != nil {
		return err
	}
	if err := c.acquireState(); err != nil {
		return err
	}
	return c.observe(ctx)
}

func (c *CacheAware) setDefaults() error {
	if c.Name == "" {
		c.Name = defaultName
	}
	if c.IndexMemory == 0 {
		c.IndexMemory = defaultIndexMemory
	}
	if c.MaxPrompt == 0 {
		c.MaxPrompt = defaultMaxPrompt
	}
	switch {
	case c.CacheCapacity != 0 && c.CacheCapacity < minCacheCapacity:
		return fmt.Errorf("cache_capacity must be 0 or at least %d tokens: %d", minCacheCapacity, c.CacheCapacity)
	case c.IndexMemory < minIndexMemory:
		return fmt.Errorf("index_memory must be at least %d bytes: %d", minIndexMemory, c.IndexMemory)
	case c.MaxPrompt < 0 || c.MaxPrompt > bodyMemory:
		return fmt.Errorf("max_prompt must be at most %d bytes and not negative: %d", bodyMemory, c.MaxPrompt)
	}
	if err := c.checkLoad(); err != nil {
		return err
	}
	return c.checkHints()
}

// Cleanup ends the asking for load, closes idle connections and lets go of the
// shared state. Requests in flight go on with it.
func (c *CacheAware) Cleanup() error {
	if c.load != nil {
		c.load.stop()
		c.state.leave(c.load)
	}
	var err error
	if c.transport != nil {
		err = c.transport.Cleanup()
	}
	return errors.Join(err, c.releaseState())
}

// Select chooses the replica for one attempt at a request, and books the
// request's work there.
func (c *CacheAware) Select(pool reverseproxy.UpstreamPool, r *http.Request, w http.ResponseWriter) *reverseproxy.Upstream {
	now := time.Now()
	c.load.see(pool, now)
	candidates := available(pool)
	if len(candidates) == 0 {
		return nil
	}
	call := c.callOf(r)
	var reason selection.Reason
	if owner, ok := call.owner(candidates); ok {
		candidates, reason = []string{owner}, reasonOwner
	} else if len(call.request.Blocks) == 0 && c.fallback != nil && !c.state.fleet.Recognises(&call.request) {
		chosen := c.fallback.Select(pool, r, w)
		if chosen == nil {
			return nil
		}
		candidates, reason = []string{chosen.String()}, reasonFallback
	}
	booking := c.state.fleet.Place(time.Now(), &call.request, candidates)
	if reason != "" {
		booking.Reason = reason
	}
	decision := call.decide(booking, len(candidates))
	decision.outcome.recorded = c.state.recording.Load().take(&call.request, decision.at)
	c.state.decisions.add(decision)
	call.begin(booking, decision)
	if c.Explain && w != nil {
		w.Header().Set(explainHeader, explanation(booking))
	}
	return find(pool, booking.Estimate.Replica)
}

// available lists the addresses of upstreams that may be chosen.
func available(pool reverseproxy.UpstreamPool) []string {
	addresses := make([]string, 0, len(pool))
	for _, upstream := range pool {
		if upstream.Available() {
			addresses = append(addresses, upstream.String())
		}
	}
	return addresses
}

// find returns the upstream at an address. Dynamic upstreams are new objects
// for every attempt, so pointers are never kept. Availability is not asked for
// again: the request is booked, and would be refused if the answer had changed.
func find(pool reverseproxy.UpstreamPool, address string) *reverseproxy.Upstream {
	for _, upstream := range pool {
		if upstream.String() == address {
			return upstream
		}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner     = (*CacheAware)(nil)
	_ caddy.CleanerUpper    = (*CacheAware)(nil)
	_ reverseproxy.Selector = (*CacheAware)(nil)
)
