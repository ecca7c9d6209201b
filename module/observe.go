package module

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// observe puts an observer around the transport of the proxy handler that the
// policy belongs to, and gets ready to ask its replicas for their load. The
// handler loads its policy before it makes its default transport, so a missing
// one is made here as the handler would, and let go of in Cleanup.
func (c *CacheAware) observe(ctx caddy.Context) error {
	handler := parent(ctx)
	if handler == nil {
		c.logger.Warn("no reverse_proxy found above the policy; first tokens and usage will not be seen, nor will replicas be asked for their load")
		return nil
	}
	if handler.Transport == nil {
		transport := new(reverseproxy.HTTPTransport)
		if err := transport.Provision(ctx); err != nil {
			return fmt.Errorf("provisioning default transport: %w", err)
		}
		handler.Transport, c.transport = transport, transport
	}
	watch, err := c.newLoadWatch(handler, handler.Transport)
	if err != nil {
		return fmt.Errorf("setting up load polling: %w", err)
	}
	c.load = watch
	handler.Transport = observeTransport(handler.Transport, &transportObserver{
		responseBuffers: handler.ResponseBuffers != 0,
		health:          watch.checks(),
	})
	return watch.subscribe(ctx)
}

// parent returns the proxy handler that is being provisioned, the nearest one
// above the policy.
func parent(ctx caddy.Context) *reverseproxy.Handler {
	modules := ctx.Modules()
	for i := len(modules) - 1; i >= 0; i-- {
		if handler, ok := modules[i].(*reverseproxy.Handler); ok {
			return handler
		}
	}
	return nil
}
