package module

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestLoadSettings(t *testing.T) {
	for config, want := range map[string]struct {
		interval time.Duration
		err      string
	}{
		`{}`:                                     {interval: time.Second},
		`{"engine":"auto","load_interval":"2s"}`: {interval: 2 * time.Second},
		`{"load_interval":0}`:                    {},
		`{"engine":"none","load_uri":"/m?a=b"}`:  {interval: time.Second},
		`{"load_interval":"10ms"}`:               {interval: 10 * time.Millisecond},
		`{"load_interval":1}`:                    {err: "load_interval must be 0 or at least 10ms: 1ns"},
		`{"load_interval":-1}`:                   {err: "load_interval must be 0 or at least 10ms: -1ns"},
		`{"engine":"tensorrt"}`:                  {err: "engine must be one of auto, vllm"},
		`{"load_uri":"metrics"}`:                 {err: "load_uri must be a path that begins with a slash: 'metrics'"},
		`{"load_uri":"/metrics#top"}`:            {err: "load_uri must be"},
		`{"load_uri":"//host/metrics"}`:          {err: "load_uri must be a path that begins with a slash: '//host/metrics'"},
	} {
		t.Run(config, func(t *testing.T) {
			var c CacheAware
			if err := json.Unmarshal([]byte(config), &c); err != nil {
				t.Fatal(err)
			}
			err := c.setDefaults()
			if want.err != "" {
				if err == nil || !strings.Contains(err.Error(), want.err) {
					t.Errorf("error = %v, want it to contain %q", err, want.err)
				}
				return
			}
			if err != nil || c.loadInterval() != want.interval {
				t.Errorf("interval = %s, error %v; want %s", c.loadInterval(), err, want.interval)
			}
		})
	}
}
