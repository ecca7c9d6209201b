// Command caddy is Caddy with its standard modules and the cache_aware
// selection policy, for running and developing without xcaddy.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed5db0839e/caddy-cache-aware"
)

func main() {
	caddycmd.Main()
}
