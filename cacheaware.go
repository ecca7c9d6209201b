// Package cacheaware registers everything this project adds to Caddy: the
// cache_aware selection policy and the cache-aware command.
package cacheaware

import (
	_ "github.com/seed5db0839e/caddy-cache-aware/integration/command"
	_ "github.com/seed5db0839e/caddy-cache-aware/module"
)
