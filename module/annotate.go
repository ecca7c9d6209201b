package module

import (
	"fmt"
	"strings"

	"go.uber.org/zap/zapcore"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

const (
	placeholderPrefix = "http.reverse_proxy.cache_aware."
	explainHeader     = "Cache-Aware"
)

// reasonFallback: the request carries no prompt and the configured fallback chose.
const reasonFallback selection.Reason = "fallback"

// placeholder answers {http.reverse_proxy.cache_aware.*}.
func (k *call) placeholder(key string) (any, bool) {
	name, ours := strings.CutPrefix(key, placeholderPrefix)
	if !ours || k.attempt == nil {
		return nil, false
	}
	booking := k.attempt.booking
	switch name {
	case "model":
		return k.request.Model, true
	case "prompt_tokens":
		return k.request.Tokens + k.request.Extra, true
	case "matched_tokens":
		return booking.Estimate.Matched, true
	case "reason":
		return string(booking.Reason), true
	case "estimate_ms":
		return milliseconds(booking.Estimate.TTFT()), true
	}
	return nil, false
}

// MarshalLogObject writes the access log's cache_aware object.
func (k *call) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	if k.attempt == nil {
		return nil
	}
	booking := k.attempt.booking
	enc.AddString("model", k.request.Model)
	enc.AddInt("prompt_tokens", k.request.Tokens+k.request.Extra)
	enc.AddInt("matched_tokens", booking.Estimate.Matched)
	enc.AddString("reason", string(booking.Reason))
	enc.AddFloat64("estimate_ms", milliseconds(booking.Estimate.TTFT()))
	k.attempt.logOutcome(enc)
	return nil
}

// explanation is the value of the Cache-Aware response header.
func explanation(b *selection.Booking) string {
	e := &b.Estimate
	return fmt.Sprintf("upstream=%s; matched=%d; prompt=%d; reason=%s; wait_ms=%.1f; prefill_ms=%.1f; decode_ms=%.1f; factor=%.2f; failing_ms=%.1f; cost_ms=%.1f",
		e.Replica, e.Matched, e.Matched+e.Uncached, b.Reason, e.Wait*1e3, e.Prefill*1e3, e.Decode*1e3, e.Factor, e.Failing*1e3, e.Cost*1e3)
}

func milliseconds(seconds float64) float64 { return seconds * 1e3 }
