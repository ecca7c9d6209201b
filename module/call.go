package module

import (
	"context"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// callVar is the request variable that holds the current call.
const callVar = "cache_aware.call"

// call is one client request on its way through one proxy handler, over all
// its attempts. It belongs to the request's goroutine; what the end of the
// request may do at the same time is guarded in attempt.
type call struct {
	http    *http.Request // the handler's clone, the same for every attempt
	body    *replayBody
	request selection.Request
	stored  reference
	unread  error // why no prompt could be read
	attempt *bookedAttempt

	measured measuredPrompt
}

// callOf returns the call that a request belongs to, reading its prompt on
// the first attempt. On later ones the body is made ready to be sent again,
// and the replica of the failed attempt is avoided.
func (c *CacheAware) callOf(r *http.Request) *call {
	if known, ok := caddyhttp.GetVar(r.Context(), callVar).(*call); ok && known.http == r {
		known.giveUp()
		openBody(r, c.MaxPrompt, c.state.bodies)
		return known
	}
	fresh := &call{http: r}
	c.read(fresh)
	caddyhttp.SetVar(r.Context(), callVar, fresh)
	fresh.annotate()
	return fresh
}

// giveUp closes the attempt before this one, if it did not close itself: the
// handler has already decided to try again.
func (k *call) giveUp() {
	if k.attempt == nil {
		return
	}
	k.attempt.fail(selection.FailureModel, time.Now())
	k.request.Avoid = append(k.request.Avoid, k.attempt.booking.Estimate.Replica)
}

// begin hands the attempt to the observing transport. Should the transport
// never hear of it, the end of the request closes it.
func (k *call) begin(booking *selection.Booking, d *decision) {
	k.attempt = &bookedAttempt{
		booking: booking, stored: k.stored, measured: k.measured, started: d.at, outcome: &d.outcome,
		prompt: len(k.request.Blocks) > 0,
	}
	k.attempt.stored.replica = booking.Estimate.Replica
	k.attempt.stop = context.AfterFunc(k.http.Context(), k.attempt.abandon)
	setAttempt(k.http, k.attempt)
}

// annotate offers what is known of the call as placeholders and in the access
// log. Values are looked up when they are asked for.
func (k *call) annotate() {
	ctx := k.http.Context()
	if replacer, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		replacer.Map(k.placeholder)
	}
	if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Set(zap.Object("cache_aware", k))
	}
}
