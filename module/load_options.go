package module

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed5db0839e/caddy-cache-aware/health"
)

const (
	defaultLoadInterval = time.Second
	// minLoadInterval keeps a number without a unit, which JSON takes as
	// nanoseconds, from becoming a flood.
	minLoadInterval = 10 * time.Millisecond
)

// checkLoad rejects settings of the load pages that make no sense.
func (c *CacheAware) checkLoad() error {
	if err := checkEngine(c.Engine); c.Engine != "" && err != nil {
		return err
	}
	if err := checkLoadURI(c.LoadURI); c.LoadURI != "" && err != nil {
		return err
	}
	return checkLoadInterval(c.loadInterval())
}

func (c *CacheAware) loadInterval() time.Duration {
	if c.LoadInterval == nil {
		return defaultLoadInterval
	}
	return time.Duration(*c.LoadInterval)
}

func checkEngine(name string) error {
	if engines := health.Engines(); !slices.Contains(engines, name) {
		return fmt.Errorf("engine must be one of %s: '%s'", strings.Join(engines, ", "), name)
	}
	return nil
}

func checkLoadURI(uri string) error {
	parsed, err := url.Parse(uri)
	if err != nil || parsed.Host != "" || parsed.Fragment != "" || !strings.HasPrefix(parsed.Path, "/") {
		return fmt.Errorf("load_uri must be a path that begins with a slash: '%s'", uri)
	}
	return nil
}

func checkLoadInterval(interval time.Duration) error {
	if interval != 0 && interval < minLoadInterval {
		return fmt.Errorf("load_interval must be 0 or at least %s: %s", minLoadInterval, interval)
	}
	return nil
}

// parseChecked reads the only argument of an option and checks it.
func parseChecked(d *caddyfile.Dispenser, value *string, check func(string) error) error {
	if err := parseOne(d, value); err != nil {
		return err
	}
	if err := check(*value); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func (c *CacheAware) parseLoadInterval(d *caddyfile.Dispenser) error {
	var text string
	if err := parseOne(d, &text); err != nil {
		return err
	}
	interval, err := caddy.ParseDuration(text)
	if err != nil {
		return d.Errf("parsing load_interval '%s': %v", text, err)
	}
	if err := checkLoadInterval(interval); err != nil {
		return d.WrapErr(err)
	}
	c.LoadInterval = (*caddy.Duration)(&interval)
	return nil
}
