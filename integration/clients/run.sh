#!/usr/bin/env bash
# Calls a real Caddy with the official client libraries. Needs Go, node and npm.
set -euo pipefail
cd "$(dirname "$0")"
export CGO_ENABLED=0
npm ci --prefix node --no-audit --no-fund --loglevel=error
go build -C ../.. ./... # which may take minutes, and is no part of the tests' time
go test -count=1 -timeout 10m ./...
