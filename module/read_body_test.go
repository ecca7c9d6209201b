package module

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// newReader returns a function that has a policy read a body sent with header
// lines, and returns the call that it made of it.
func newReader(t *testing.T) func(path, body string, header ...string) *call {
	t.Helper()
	state, err := newState(minIndexMemory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Destruct() })
	policy := &CacheAware{MaxPrompt: defaultMaxPrompt, state: state, logger: zap.NewNop()}
	return func(path, body string, header ...string) *call {
		r, cancel := benchmarkRequest([]byte(body))
		t.Cleanup(cancel)
		r.URL.Path = path
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			r.Header[name] = append(r.Header[name], value)
		}
		if policy.Select(poolOf("a:1", "b:1"), r, nil) == nil {
			t.Fatal("no replica chosen")
		}
		return caddyhttp.GetVar(r.Context(), callVar).(*call)
	}
}

const readChat = `{"model":"m","prompt_cache_key":"k","stream":true,"max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`

// What was read of one request is not taken for another one's that cannot be read.
func TestUnreadableRequestsAreTakenForNothing(t *testing.T) {
	read := newReader(t)
	for name, unreadable := range map[string]struct{ body, header string }{
		"broken coding":  {readChat, "Content-Encoding: gzip"},
		"unknown coding": {readChat, "Content-Encoding: rot13"},
		"too many":       {readChat, "Content-Encoding: gzip, gzip, gzip"},
		"malformed":      {`{"messages":[}`, "Accept: */*"},
		"not JSON":       {"hello", "Accept: */*"},
		"empty":          {"", "Accept: */*"},
	} {
		known := read("/v1/chat/completions", readChat)
		if len(known.request.Blocks) == 0 || len(known.request.Hints) == 0 {
			t.Fatalf("not read: %+v", known.request)
		}
		k := read("/v1/chat/completions", unreadable.body, unreadable.header)
		if r := k.request; r.Model != "" || len(r.Blocks) > 0 || len(r.Hints) > 0 || r.Tokens+r.Extra+r.Output > 0 || r.Streamed || k.unread == nil {
			t.Errorf("%s: taken for %+v, unread for %v", name, r, k.unread)
		}
	}
}

// What the path tells counts, whatever becomes of the body.
func TestUnreadableBodyOfResponses(t *testing.T) {
	read := newReader(t)
	if k := read("/v1/responses", "{", "Content-Encoding: gzip"); !k.stored.issues {
		t.Error("the answer's id will not be learned")
	}
	if k := read("/v1/responses/resp_1/cancel", "{", "Content-Encoding: gzip"); !k.stored.names || k.stored.issues {
		t.Errorf("not known as cancelling: %+v", k.stored)
	}
	if k := read("/v1/responses/input_tokens", `{"model":"m","input":"a"}`); k.stored.issues {
		t.Error("counting is taken for a new response")
	}
}

func TestWhatIsReadOfARequest(t *testing.T) {
	read := newReader(t)
	for _, tt := range []struct {
		path, body string
		want       selection.Request
	}{
		{"/v1/chat/completions", readChat, selection.Request{Model: "m", Work: selection.Generate, Tokens: 5, Output: 5, Streamed: true}},
		{"/v1/completions", `{"model":"m","prompt":["twelve bytes","eight by"],"n":3,"max_tokens":7}`,
			selection.Request{Model: "m", Work: selection.Generate, Tokens: 3, Extra: 2, Output: 21}},
		{"/v1/embeddings", `{"model":"m","input":[1,2,3]}`, selection.Request{Model: "m", Work: selection.Prefill, Tokens: 3}},
		{"/tokenize", `{"model":"m","prompt":"twelve bytes"}`, selection.Request{Model: "m", Work: selection.Light}},
		{"/v1/responses/resp_1/cancel", ``, selection.Request{Work: selection.Light}},
		{"/v1/audio/transcriptions", `--boundary`, selection.Request{Work: selection.Generate}},
	} {
		got := read(tt.path, tt.body).request
		got.Blocks, got.Hints, got.Avoid = nil, nil, nil
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s %s:\n got %+v\nwant %+v", tt.path, tt.body, got, tt.want)
		}
	}
}

func TestMaxPromptIsBounded(t *testing.T) {
	for bytes, ok := range map[int64]bool{-1: false, 0: true, 1: true, bodyMemory: true, bodyMemory + 1: false, 5 << 30: false} {
		if err := (&CacheAware{MaxPrompt: bytes}).setDefaults(); (err == nil) != ok {
			t.Errorf("%d: %v", bytes, err)
		}
	}
}

func TestCodedBodiesAreRead(t *testing.T) {
	read := newReader(t)
	want := read("/v1/chat/completions", readChat).request
	for _, codings := range [][]string{{"gzip"}, {"zstd"}, {"br"}, {"x-gzip"}, {"gzip, br"}, {"gzip", "zstd"}} {
		body := []byte(readChat)
		var header []string
		for _, line := range codings {
			header = append(header, "Content-Encoding: "+line)
			for _, coding := range strings.Split(line, ", ") {
				body = compress(strings.TrimPrefix(coding, "x-"), body)
			}
		}
		got := read("/v1/chat/completions", string(body), header...).request
		if got.Model != want.Model || !slices.Equal(got.Blocks, want.Blocks) || !slices.Equal(got.Hints, want.Hints) {
			t.Errorf("%q: read as %+v, want %+v", codings, got, want)
		}
	}
}
