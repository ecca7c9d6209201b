package module

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

var (
	_ reverseproxy.TLSTransport                        = (*observedTransport)(nil)
	_ reverseproxy.H2CTransport                        = (*observedTransport)(nil)
	_ reverseproxy.BufferedTransport                   = (*observedTransport)(nil)
	_ reverseproxy.RequestHeaderOpsTransport           = (*observedTransport)(nil)
	_ reverseproxy.HealthCheckSchemeOverriderTransport = (*observedTransport)(nil)
	_ reverseproxy.ProxyProtocolTransport              = (*observedTransport)(nil)
	_ reverseproxy.ContentLengthRequiredTransport      = (*observedTransport)(nil)
	_ caddy.CleanerUpper                               = (*observedTransport)(nil)

	_ reverseproxy.TLSTransport                        = (*observedHTTPTransport)(nil)
	_ reverseproxy.H2CTransport                        = (*observedHTTPTransport)(nil)
	_ reverseproxy.RequestHeaderOpsTransport           = (*observedHTTPTransport)(nil)
	_ reverseproxy.HealthCheckSchemeOverriderTransport = (*observedHTTPTransport)(nil)
	_ reverseproxy.ProxyProtocolTransport              = (*observedHTTPTransport)(nil)
	_ caddy.CleanerUpper                               = (*observedHTTPTransport)(nil)
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fullTransport implements every optional interface.
type fullTransport struct {
	roundTrip
	calls map[string]int
}

func (t fullTransport) TLSEnabled() bool                        { return true }
func (t fullTransport) EnableTLS(*reverseproxy.TLSConfig) error { t.calls["EnableTLS"]++; return nil }
func (t fullTransport) EnableH2C() error                        { t.calls["EnableH2C"]++; return nil }
func (t fullTransport) DefaultBufferSizes() (int64, int64)      { return 1, 2 }
func (t fullTransport) RequestHeaderOps() *headers.HeaderOps    { return new(headers.HeaderOps) }
func (t fullTransport) ProxyProtocolEnabled() bool              { return true }
func (t fullTransport) RequiresContentLength() bool             { return true }
func (t fullTransport) Cleanup() error                          { t.calls["Cleanup"]++; return nil }
func (t fullTransport) OverrideHealthCheckScheme(u *url.URL, _ string) {
	u.Scheme = "https"
}

func TestObservedTransportForwards(t *testing.T) {
	inner := fullTransport{calls: map[string]int{}}
	o := observeTransport(inner, new(transportObserver)).(*observedTransport)
	var u url.URL
	o.OverrideHealthCheckScheme(&u, "")
	request, response := o.DefaultBufferSizes()
	if !o.TLSEnabled() || request != 1 || response != 2 || o.RequestHeaderOps() == nil ||
		!o.ProxyProtocolEnabled() || !o.RequiresContentLength() || u.Scheme != "https" {
		t.Error("an answer of the inner transport is lost")
	}
	if err := errors.Join(o.EnableTLS(nil), o.EnableH2C(), o.Cleanup()); err != nil || len(inner.calls) != 3 {
		t.Errorf("calls %v, %v", inner.calls, err)
	}
}

func TestObservedTransportDefaults(t *testing.T) {
	o := observeTransport(roundTrip(nil), new(transportObserver)).(*observedTransport)
	var u url.URL
	o.OverrideHealthCheckScheme(&u, "")
	request, response := o.DefaultBufferSizes()
	if o.TLSEnabled() || request != 0 || response != 0 || o.RequestHeaderOps() != nil ||
		o.ProxyProtocolEnabled() || o.RequiresContentLength() || u.Scheme != "" || o.Cleanup() != nil {
		t.Error("a bare transport is given abilities")
	}
	if o.EnableTLS(nil) == nil || o.EnableH2C() == nil {
		t.Error("a bare transport accepts TLS or h2c")
	}
}
