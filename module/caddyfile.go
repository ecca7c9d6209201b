package module

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/dustin/go-humanize"
)

// UnmarshalCaddyfile sets up the policy from Caddyfile tokens. Syntax:
//
//	lb_policy cache_aware {
//	    name           <id>
//	    engine         auto|vllm|sglang|llamacpp|trtllm|tgi|lmdeploy|ollama|none
//	    load_uri       <path>
//	    load_interval  <duration>
//	    cache_capacity auto|<tokens>
//	    index_memory   <size>
//	    max_prompt     <size>
//	    session_header <name...>
//	    isolate_by     <placeholder>
//	    fallback       <policy> ...
//	    explain
//	}
func (c *CacheAware) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume policy name
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(map[string]bool)
	for d.NextBlock(0) {
		option := d.Val()
		parse, known := options[option]
		if !known {
			return d.Errf("unrecognized option '%s'", option)
		}
		if seen[option] {
			return d.Errf("%s is already specified", option)
		}
		seen[option] = true
		if err := parse(c, d); err != nil {
			return err
		}
	}
	return nil
}

// options maps each option to what reads it. The dispenser stands at the
// option's name.
var options = map[string]func(*CacheAware, *caddyfile.Dispenser) error{
	"name": func(c *CacheAware, d *caddyfile.Dispenser) error { return parseOne(d, &c.Name) },
	"engine": func(c *CacheAware, d *caddyfile.Dispenser) error {
		return parseChecked(d, &c.Engine, checkEngine)
	},
	"load_uri": func(c *CacheAware, d *caddyfile.Dispenser) error {
		return parseChecked(d, &c.LoadURI, checkLoadURI)
	},
	"load_interval":  (*CacheAware).parseLoadInterval,
	"cache_capacity": (*CacheAware).parseCacheCapacity,
	"index_memory": func(c *CacheAware, d *caddyfile.Dispenser) error {
		return parseSize(d, &c.IndexMemory, minIndexMemory)
	},
	"max_prompt": func(c *CacheAware, d *caddyfile.Dispenser) error { return parseSize(d, &c.MaxPrompt, 1) },
	"session_header": func(c *CacheAware, d *caddyfile.Dispenser) error {
		if c.SessionHeader = d.RemainingArgs(); len(c.SessionHeader) == 0 {
			return d.ArgErr()
		}
		return nil
	},
	"isolate_by": (*CacheAware).parseIsolateBy,
	"fallback":   (*CacheAware).parseFallback,
	"explain": func(c *CacheAware, d *caddyfile.Dispenser) error {
		if d.NextArg() {
			return d.ArgErr()
		}
		c.Explain = true
		return nil
	},
}

// parseOne reads the only argument of an option.
func parseOne(d *caddyfile.Dispenser, value *string) error {
	if !d.AllArgs(value) {
		return d.ArgErr()
	}
	return nil
}

// parseSize reads a size such as 256MiB.
func parseSize(d *caddyfile.Dispenser, bytes *int64, least int64) error {
	option := d.Val()
	var text string
	if err := parseOne(d, &text); err != nil {
		return err
	}
	size, err := humanize.ParseBytes(text)
	if err != nil {
		return d.Errf("parsing %s '%s': %v", option, text, err)
	}
	if size < uint64(least) || size > 1<<62 {
		return d.Errf("%s must be at least %d bytes: '%s'", option, least, text)
	}
	*bytes = int64(size)
	return nil
}

func (c *CacheAware) parseCacheCapacity(d *caddyfile.Dispenser) error {
	var text string
	if err := parseOne(d, &text); err != nil {
		return err
	}
	if text == "auto" {
		return nil
	}
	tokens, err := strconv.Atoi(text)
	if err != nil || tokens < minCacheCapacity {
		return d.Errf("cache_capacity must be 'auto' or at least %d tokens: '%s'", minCacheCapacity, text)
	}
	c.CacheCapacity = tokens
	return nil
}

func (c *CacheAware) parseIsolateBy(d *caddyfile.Dispenser) error {
	if err := parseOne(d, &c.IsolateBy); err != nil {
		return err
	}
	if !hasPlaceholder(c.IsolateBy) {
		return d.Errf("isolate_by must contain a placeholder: '%s'", c.IsolateBy)
	}
	return nil
}

func (c *CacheAware) parseFallback(d *caddyfile.Dispenser) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	name := d.Val()
	module, err := caddyfile.UnmarshalModule(d, "http.reverse_proxy.selection_policies."+name)
	if err != nil {
		return err
	}
	selector, ok := module.(reverseproxy.Selector)
	if !ok {
		return d.Errf("fallback '%s' is not a selection policy: %T", name, module)
	}
	c.FallbackRaw = caddyconfig.JSONModuleObject(selector, "policy", name, nil)
	return nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*CacheAware)(nil)
