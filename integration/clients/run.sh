#!/usr/bin/env bash
# Calls a real Caddy with the official client libraries. Needs Go, node and npm.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --prefix node --no-audit --no-fund --loglevel=error
CGO_ENABLED=0 go test -count=1 -timeout 180s ./...
