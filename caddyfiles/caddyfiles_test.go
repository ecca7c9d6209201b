// Package caddyfiles tests that every example configuration loads.
package caddyfiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed5db0839e/caddy-cache-aware"
)

func TestExamplesLoad(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	files, err := filepath.Glob("*.Caddyfile")
	if err != nil || len(files) < 9 {
		t.Fatalf("found %d examples, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": file})
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range warnings {
				t.Errorf("warning: %s", warning.String())
			}
			if !strings.Contains(string(config), `"policy":"cache_aware"`) {
				t.Error("the example does not use the policy")
			}
			var parsed caddy.Config
			if err := caddy.StrictUnmarshalJSON(config, &parsed); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&parsed); err != nil {
				t.Fatal(err)
			}
		})
	}
}
