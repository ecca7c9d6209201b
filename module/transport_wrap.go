package module

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// observeTransport wraps inner, a transport that has been provisioned, so that
// o watches every round trip. What inner offers a proxy beyond round trips is
// offered by the wrapper too.
func observeTransport(inner http.RoundTripper, o *transportObserver) http.RoundTripper {
	if t, ok := inner.(*reverseproxy.HTTPTransport); ok {
		return &observedHTTPTransport{HTTPTransport: t, observer: o}
	}
	return &observedTransport{RoundTripper: inner, observer: o}
}

// observedHTTPTransport is Caddy's own transport under observation. By
// embedding it offers all that Caddy's transport offers.
type observedHTTPTransport struct {
	*reverseproxy.HTTPTransport
	observer *transportObserver
}

func (t *observedHTTPTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.observer.observe(req, t.HTTPTransport)
}

// observedTransport is any other transport under observation. It implements
// all optional interfaces; where inner does not, it does what the proxy does
// with a transport that lacks them.
type observedTransport struct {
	http.RoundTripper
	observer *transportObserver
}

func (t *observedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.observer.observe(req, t.RoundTripper)
}

func (t *observedTransport) TLSEnabled() bool {
	inner, ok := t.RoundTripper.(reverseproxy.TLSTransport)
	return ok && inner.TLSEnabled()
}

func (t *observedTransport) EnableTLS(base *reverseproxy.TLSConfig) error {
	if inner, ok := t.RoundTripper.(reverseproxy.TLSTransport); ok {
		return inner.EnableTLS(base)
	}
	return fmt.Errorf("enabling TLS: not supported by %T", t.RoundTripper)
}

func (t *observedTransport) EnableH2C() error {
	if inner, ok := t.RoundTripper.(reverseproxy.H2CTransport); ok {
		return inner.EnableH2C()
	}
	return fmt.Errorf("enabling h2c: not supported by %T", t.RoundTripper)
}

func (t *observedTransport) DefaultBufferSizes() (request, response int64) {
	if inner, ok := t.RoundTripper.(reverseproxy.BufferedTransport); ok {
		return inner.DefaultBufferSizes()
	}
	return 0, 0
}

func (t *observedTransport) RequestHeaderOps() *headers.HeaderOps {
	if inner, ok := t.RoundTripper.(reverseproxy.RequestHeaderOpsTransport); ok {
		return inner.RequestHeaderOps()
	}
	return nil
}

func (t *observedTransport) OverrideHealthCheckScheme(base *url.URL, port string) {
	if inner, ok := t.RoundTripper.(reverseproxy.HealthCheckSchemeOverriderTransport); ok {
		inner.OverrideHealthCheckScheme(base, port)
	}
}

func (t *observedTransport) ProxyProtocolEnabled() bool {
	inner, ok := t.RoundTripper.(reverseproxy.ProxyProtocolTransport)
	return ok && inner.ProxyProtocolEnabled()
}

func (t *observedTransport) RequiresContentLength() bool {
	inner, ok := t.RoundTripper.(reverseproxy.ContentLengthRequiredTransport)
	return ok && inner.RequiresContentLength()
}

// Cleanup cleans inner up, for whoever provisioned it.
func (t *observedTransport) Cleanup() error {
	if inner, ok := t.RoundTripper.(caddy.CleanerUpper); ok {
		return inner.Cleanup()
	}
	return nil
}
