// Package proxy runs a real Caddy inside the process, for demos and tests. It
// has no admin endpoint unless it is told to, asks for no certificates and
// writes nothing to disk.
package proxy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile" // the Caddyfile adapter
	_ "github.com/caddyserver/caddy/v2/modules/standard"          // what the Caddyfile names

	_ "github.com/seed5db0839e/caddy-cache-aware/module" // the policy
)

// Proxy is the one Caddy of this process. A second Start replaces the
// configuration of the first, as a reload does.
type Proxy struct {
	// URL is where it listens, without a slash at the end.
	URL string
}

// Options say what to run. Site and Global are Caddyfile text.
type Options struct {
	Address string // host:port to listen on, a loopback one
	Scheme  string // https if the site has certificates; default http
	Site    string // directives of the one site
	Global  string // further global options
	Admin   string // host:port of the admin endpoint, a loopback one; default: none
}

// Start loads a configuration and waits until the proxy listens.
func Start(o Options) (*Proxy, error) {
	config, err := adapt(o)
	if err != nil {
		return nil, err
	}
	if err := caddy.Load(config, true); err != nil {
		return nil, fmt.Errorf("loading configuration: %w", err)
	}
	return &Proxy{URL: o.scheme() + "://" + o.Address}, awaitListener(o.Address)
}

func (o Options) scheme() string { return cmp.Or(o.Scheme, "http") }

// Stop ends the proxy and waits for requests in flight.
func Stop() error { return caddy.Stop() }

// globals keep Caddy to the loopback interface, from asking for certificates and
// from writing: its periodic look at the storage would leave files there.
const globals = "default_bind 127.0.0.1\npersist_config off\nauto_https off\nstorage_check off\nstorage_clean_interval off\n"

func adapt(o Options) ([]byte, error) {
	admin := "admin " + cmp.Or(o.Admin, "off") + "\n"
	text := fmt.Sprintf("{\n%s\n}\n\n%s://%s {\n%s\n}\n", globals+admin+o.Global, o.scheme(), o.Address, o.Site)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err != nil {
		return nil, fmt.Errorf("adapting Caddyfile: %w", err)
	}
	if strings.Contains(o.Global, "log") {
		return config, nil
	}
	return quiet(config)
}

// quiet turns all logs off.
func quiet(config []byte) ([]byte, error) {
	var parsed map[string]any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, fmt.Errorf("reading adapted configuration: %w", err)
	}
	parsed["logging"] = map[string]any{"logs": map[string]any{"default": map[string]any{"level": "PANIC"}}}
	return json.Marshal(parsed)
}

// awaitListener waits until a connection is accepted.
func awaitListener(address string) error {
	var err error
	for range 100 {
		var connection net.Conn
		if connection, err = net.DialTimeout("tcp", address, time.Second); err == nil {
			return connection.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("waiting for %s: %w", address, err)
}
