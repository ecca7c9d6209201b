package module

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func TestUnmarshalCaddyfile(t *testing.T) {
	for name, test := range map[string]struct{ input, json string }{
		"bare":              {"", `{}`},
		"empty block":       {"{\n}", `{}`},
		"name":              {"{\nname gpus\n}", `{"name":"gpus"}`},
		"engine":            {"{\nengine sglang\n}", `{"engine":"sglang"}`},
		"engine auto":       {"{\nengine auto\n}", `{"engine":"auto"}`},
		"engine none":       {"{\nengine none\n}", `{"engine":"none"}`},
		"load uri":          {"{\nload_uri /stats/metrics\n}", `{"load_uri":"/stats/metrics"}`},
		"load uri query":    {"{\nload_uri /m?a=b\n}", `{"load_uri":"/m?a=b"}`},
		"load interval":     {"{\nload_interval 2.5s\n}", `{"load_interval":2500000000}`},
		"load interval off": {"{\nload_interval 0\n}", `{"load_interval":0}`},
		"capacity auto":     {"{\ncache_capacity auto\n}", `{}`},
		"capacity":          {"{\ncache_capacity 120000\n}", `{"cache_capacity":120000}`},
		"index memory":      {"{\nindex_memory 64MiB\n}", `{"index_memory":67108864}`},
		"index memory (MB)": {"{\nindex_memory 64MB\n}", `{"index_memory":64000000}`},
		"max prompt":        {"{\nmax_prompt 1MiB\n}", `{"max_prompt":1048576}`},
		"session header":    {"{\nsession_header X-Session\n}", `{"session_header":["X-Session"]}`},
		"session headers":   {"{\nsession_header X-Session x-chat\n}", `{"session_header":["X-Session","x-chat"]}`},
		"isolate by":        {"{\nisolate_by {http.auth.user.id}\n}", `{"isolate_by":"{http.auth.user.id}"}`},
		"explain":           {"{\nexplain\n}", `{"explain":true}`},
		"fallback":          {"{\nfallback round_robin\n}", `{"fallback":{"policy":"round_robin"}}`},
		"fallback with arguments": {
			"{\nfallback header X-User\n}",
			`{"fallback":{"field":"X-User","policy":"header"}}`,
		},
		"fallback with a block": {
			"{\nfallback header X-User {\nfallback first\n}\n}",
			`{"fallback":{"fallback":{"policy":"first"},"field":"X-User","policy":"header"}}`,
		},
		"all": {
			"{\nname a\nengine vllm\nload_uri /m\nload_interval 1d\ncache_capacity 1024\nindex_memory 16MiB\nmax_prompt 1\nsession_header A\nisolate_by {b}\nfallback random\nexplain\n}",
			`{"name":"a","engine":"vllm","load_uri":"/m","load_interval":86400000000000,"cache_capacity":1024,"index_memory":16777216,"max_prompt":1,"session_header":["A"],"isolate_by":"{b}","fallback":{"policy":"random"},"explain":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c CacheAware
			if err := c.UnmarshalCaddyfile(caddyfile.NewTestDispenser("cache_aware " + test.input)); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(&c)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.json {
				t.Errorf("JSON = %s\nwant   %s", got, test.json)
			}
		})
	}
}

func TestUnmarshalCaddyfileErrors(t *testing.T) {
	for name, test := range map[string]struct{ input, want string }{
		"argument":               {"fast", "wrong argument count"},
		"unknown option":         {"{\nspeed 1\n}", "unrecognized option 'speed'"},
		"repeated":               {"{\nname a\nname b\n}", "name is already specified"},
		"repeated flag":          {"{\nexplain\nexplain\n}", "explain is already specified"},
		"name missing":           {"{\nname\n}", "wrong argument count"},
		"name surplus":           {"{\nname a b\n}", "wrong argument count"},
		"engine missing":         {"{\nengine\n}", "wrong argument count"},
		"engine unknown":         {"{\nengine vLLM\n}", "engine must be one of auto, vllm, sglang, llamacpp, trtllm, tgi, lmdeploy, ollama, none: 'vLLM'"},
		"engine surplus":         {"{\nengine vllm sglang\n}", "wrong argument count"},
		"load uri missing":       {"{\nload_uri\n}", "wrong argument count"},
		"load uri relative":      {"{\nload_uri metrics\n}", "load_uri must be a path that begins with a slash: 'metrics'"},
		"load uri address":       {"{\nload_uri http://a/metrics\n}", "load_uri must be a path that begins with a slash: 'http://a/metrics'"},
		"load uri control":       {"{\nload_uri /a%zz\n}", "load_uri must be a path"},
		"load interval missing":  {"{\nload_interval\n}", "wrong argument count"},
		"load interval text":     {"{\nload_interval often\n}", "parsing load_interval 'often'"},
		"load interval unitless": {"{\nload_interval 5\n}", "parsing load_interval '5'"},
		"load interval small":    {"{\nload_interval 9ms\n}", "load_interval must be 0 or at least 10ms: 9ms"},
		"load interval negative": {"{\nload_interval -1s\n}", "load_interval must be 0 or at least 10ms: -1s"},
		"capacity missing":       {"{\ncache_capacity\n}", "wrong argument count"},
		"capacity surplus":       {"{\ncache_capacity 1 2\n}", "wrong argument count"},
		"capacity zero":          {"{\ncache_capacity 0\n}", "at least 1024 tokens: '0'"},
		"capacity not in tokens": {"{\ncache_capacity 80\n}", "at least 1024 tokens: '80'"},
		"capacity negative":      {"{\ncache_capacity -5\n}", "at least 1024 tokens: '-5'"},
		"capacity text":          {"{\ncache_capacity lots\n}", "at least 1024 tokens: 'lots'"},
		"index memory missing":   {"{\nindex_memory\n}", "wrong argument count"},
		"index memory text":      {"{\nindex_memory huge\n}", "parsing index_memory 'huge'"},
		"index memory small":     {"{\nindex_memory 15MiB\n}", "index_memory must be at least 16777216 bytes: '15MiB'"},
		"max prompt missing":     {"{\nmax_prompt\n}", "wrong argument count"},
		"max prompt zero":        {"{\nmax_prompt 0\n}", "max_prompt must be at least 1 bytes: '0'"},
		"max prompt negative":    {"{\nmax_prompt -1\n}", "parsing max_prompt '-1'"},
		"session header missing": {"{\nsession_header\n}", "wrong argument count"},
		"session header twice":   {"{\nsession_header A\nsession_header B\n}", "session_header is already specified"},
		"isolate by missing":     {"{\nisolate_by\n}", "wrong argument count"},
		"isolate by surplus":     {"{\nisolate_by {a} {b}\n}", "wrong argument count"},
		"isolate by constant":    {"{\nisolate_by tenants\n}", "isolate_by must contain a placeholder: 'tenants'"},
		"explain surplus":        {"{\nexplain yes\n}", "wrong argument count"},
		"fallback missing":       {"{\nfallback\n}", "wrong argument count"},
		"fallback unknown":       {"{\nfallback magic\n}", "module not registered: http.reverse_proxy.selection_policies.magic"},
	} {
		t.Run(name, func(t *testing.T) {
			var c CacheAware
			err := c.UnmarshalCaddyfile(caddyfile.NewTestDispenser("cache_aware " + test.input))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestCacheCapacityInJSON(t *testing.T) {
	for capacity, ok := range map[int]bool{0: true, minCacheCapacity: true, minCacheCapacity - 1: false, -5: false} {
		if err := (&CacheAware{CacheCapacity: capacity}).setDefaults(); (err == nil) != ok {
			t.Errorf("%d: error = %v", capacity, err)
		}
	}
}
