package module

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// checkHints rejects settings that could never have an effect.
func (c *CacheAware) checkHints() error {
	for i, name := range c.SessionHeader {
		if name == "" {
			return fmt.Errorf("session_header must not be empty")
		}
		c.SessionHeader[i] = http.CanonicalHeaderKey(name)
	}
	if c.IsolateBy != "" && !hasPlaceholder(c.IsolateBy) {
		return fmt.Errorf("isolate_by must contain a placeholder: '%s'", c.IsolateBy)
	}
	return nil
}

func hasPlaceholder(text string) bool {
	_, rest, found := strings.Cut(text, "{")
	return found && strings.Contains(rest, "}")
}

// tenant returns what keeps the request's prompts apart from those of others.
func (c *CacheAware) tenant(r *http.Request) string {
	if c.IsolateBy == "" {
		return ""
	}
	replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	return replacer.ReplaceAll(c.IsolateBy, "")
}

// hints returns the request's hints: the session headers in the order of the
// configuration, then what the body named. The model is no part of a session's
// hint, since a request whose body cannot be read names none.
func (c *CacheAware) hints(r *http.Request, tenant string, fromBody []uint64) []uint64 {
	var hints []uint64
	for _, name := range c.SessionHeader {
		if value := r.Header.Get(name); value != "" {
			hints = append(hints, tokenizer.Hint(c.state.secret, tenant, "", name+":"+value))
		}
	}
	return append(hints, fromBody...)
}
