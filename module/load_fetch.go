package module

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// Keys under which Caddy's transport looks for what the proxy knows. The proxy
// keeps their names to itself.
const (
	dialInfoCtxKey       caddy.CtxKey = "reverse_proxy.dial_info"
	proxyProtocolInfoVar              = "reverse_proxy.proxy_protocol_info"
)

// loadFetch asks replicas for pages the way that the proxy handler sends
// requests to them.
type loadFetch struct {
	transport http.RoundTripper // of the handler, below the observer
	headers   *headers.Handler  // of the handler, may be nil
}

// fetch is a health.Fetch; the replica is a dial address. Other transports than
// Caddy's may rely on a client's request: their panic would end the process.
func (f *loadFetch) fetch(ctx context.Context, replica, path string, header http.Header) (_ *http.Response, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("asking %T: panic: %v", f.transport, cause)
		}
	}()
	request, err := f.request(ctx, replica, path)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	return f.transport.RoundTrip(request)
}

// request is a request for a page, directed and dressed as the proxy does it.
// It has no scheme, which the transport knows best.
func (f *loadFetch) request(ctx context.Context, replica, path string) (*http.Request, error) {
	replacer := caddy.NewReplacer()
	info, err := dialInfo(replica, replacer)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(requestContext(ctx, info, replacer), http.MethodGet, path, nil)
	if err != nil {
		return nil, fmt.Errorf("making request: %w", err)
	}
	request.URL.Host, request.Host = info.Address, hostOf(info)
	request = request.WithContext(context.WithValue(request.Context(), caddyhttp.OriginalRequestCtxKey, *request))
	request.Header.Set("User-Agent", "caddy-cache-aware")
	if f.headers != nil && f.headers.Request != nil {
		f.headers.Request.ApplyToRequest(request)
	}
	return request, nil
}

func dialInfo(dial string, replacer *caddy.Replacer) (reverseproxy.DialInfo, error) {
	address, err := resolve(dial, replacer)
	if err != nil {
		return reverseproxy.DialInfo{}, err
	}
	return reverseproxy.DialInfo{
		Upstream: &reverseproxy.Upstream{Dial: dial, Host: new(reverseproxy.Host)},
		Network:  address.Network,
		Address:  address.JoinHostPort(0),
		Host:     address.Host,
		Port:     strconv.FormatUint(uint64(address.StartPort), 10),
	}, nil
}

// requestContext is the context of a request that no client has sent, with
// what transports and header operations look for.
func requestContext(ctx context.Context, info reverseproxy.DialInfo, replacer *caddy.Replacer) context.Context {
	replacer.Set("http.reverse_proxy.upstream.address", info.String())
	replacer.Set("http.reverse_proxy.upstream.hostport", info.Address)
	replacer.Set("http.reverse_proxy.upstream.host", info.Host)
	replacer.Set("http.reverse_proxy.upstream.port", info.Port)
	replacer.Map(noRequest)
	ctx = context.WithValue(ctx, caddy.ReplacerCtxKey, replacer)
	ctx = context.WithValue(ctx, dialInfoCtxKey, info)
	return context.WithValue(ctx, caddyhttp.VarsCtxKey, map[string]any{
		proxyProtocolInfoVar: reverseproxy.ProxyProtocolInfo{AddrPort: localhost},
	})
}

// localhost is where these requests come from, for the PROXY protocol.
var localhost = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)

// noRequest answers placeholders of a request with nothing, where they would
// be sent as they are.
func noRequest(key string) (any, bool) {
	return "", strings.HasPrefix(key, "http.")
}

// hostOf is what a client would put into the Host field.
func hostOf(info reverseproxy.DialInfo) string {
	if caddy.IsUnixNetwork(info.Network) || caddy.IsFdNetwork(info.Network) {
		return "localhost"
	}
	return info.Address
}
