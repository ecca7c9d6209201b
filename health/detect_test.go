package health

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// once polls a replica once, in the caller's goroutine, and returns whether a
// report came of it.
func once(p *Poller, name string) bool {
	r := p.replica(name)
	p.poll(r)
	return !r.failing()
}

// onePoller returns a poller of replica "a" that is never started.
func onePoller(t *testing.T, e *engine, config Config) (*Poller, *reports) {
	var got reports
	config.Fetch, config.OnReport = e.fetch, got.take
	p := newPoller(t, config)
	p.Add("a")
	return p, &got
}

const (
	vllmLoad  = "vllm:num_requests_running 3\n"
	llamaLoad = "llamacpp:requests_processing 2\n"
	propsPage = `{"total_slots":2,"default_generation_settings":{"n_ctx":100}}`
)

func owned(by string) string { return `{"data":[{"id":"m","owned_by":"` + by + `"}]}` }

func TestAuto(t *testing.T) {
	tests := map[string]struct {
		pages map[string]string
		want  string
		asked []string // by the first poll
		path  string   // asked by the second
	}{
		"vLLM": {
			map[string]string{"/v1/models": owned("vllm"), "/metrics": vllmLoad},
			"vllm", []string{"/v1/models", "/v1/models", "/metrics"}, "/metrics",
		},
		"vLLM that wants a key": {
			map[string]string{"/metrics": vllmLoad},
			"vllm",
			[]string{"/v1/models", "/prometheus/metrics", "/metrics", "/v1/models", "/metrics"}, "/metrics",
		},
		"SGLang with metrics": {
			map[string]string{"/v1/models": owned("sglang"), "/metrics": sglangPage},
			"sglang", []string{"/v1/models", sglangLoadsPath, "/v1/models", "/metrics"}, "/metrics",
		},
		"SGLang without metrics": {
			map[string]string{"/v1/models": owned("sglang"), sglangLoadsPath: engineTests["SGLang, /v1/loads"].body},
			"sglang", []string{"/v1/models", sglangLoadsPath, "/v1/models", "/metrics", sglangLoadsPath}, sglangLoadsPath,
		},
		"SGLang before its first request": {
			map[string]string{
				"/v1/models": owned("sglang"), "/metrics": "# nothing yet\n",
				sglangLoadsPath: engineTests["SGLang, /v1/loads"].body,
			},
			"sglang", []string{"/v1/models", sglangLoadsPath, "/v1/models", "/metrics", sglangLoadsPath}, sglangLoadsPath,
		},
		"llama.cpp with metrics": {
			map[string]string{"/v1/models": owned("llamacpp"), "/metrics": llamaLoad, "/props": propsPage},
			"llamacpp", []string{"/v1/models", "/props", "/metrics"}, "/metrics",
		},
		"llama.cpp without metrics": {
			map[string]string{
				"/v1/models": owned("llamacpp"), "/props": propsPage,
				"/slots": `[{"n_ctx":100,"is_processing":true}]`,
			},
			"llamacpp", []string{"/v1/models", "/props", "/metrics", "/slots"}, "/slots",
		},
		"llama.cpp with neither metrics nor slots": {
			map[string]string{"/v1/models": owned("llamacpp"), "/props": propsPage},
			"llamacpp", []string{"/v1/models", "/props", "/metrics", "/slots", "/props"}, "/props",
		},
		"TensorRT-LLM": {
			map[string]string{"/v1/models": owned("tensorrt_llm"), "/metrics": "[]", "/prometheus/metrics": trtllmPage},
			"trtllm", []string{"/v1/models", "/prometheus/metrics"}, "/prometheus/metrics",
		},
		"TGI": {
			map[string]string{"/metrics": tgiPage, "/info": `{"max_total_tokens":4096}`},
			"tgi", []string{"/v1/models", "/prometheus/metrics", "/metrics", "/info", "/metrics"}, "/metrics",
		},
		"LMDeploy": {
			map[string]string{"/v1/models": owned("lmdeploy"), "/metrics": lmdeployPage},
			"lmdeploy", []string{"/v1/models", "/is_sleeping", "/metrics"}, "/metrics",
		},
		"Ollama": {
			map[string]string{"/v1/models": owned("library"), "/api/ps": `{"models":[]}`},
			"ollama", []string{"/v1/models", "/api/ps"}, "/api/ps",
		},
		"Ollama without models": {
			map[string]string{"/v1/models": `{"object":"list","data":null}`, "/api/ps": `{"models":[]}`},
			"ollama", []string{
				"/v1/models", "/prometheus/metrics", "/metrics", sglangLoadsPath, "/get_load", "/slots", "/props",
				"/api/ps", "/api/ps",
			}, "/api/ps",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine(tt.pages)
			p, got := onePoller(t, e, Config{})
			if !once(p, "a") {
				t.Fatal(p.replica("a").err)
			}
			wantAsked(t, e, tt.asked...)
			if r := got.latest(t, "a"); r.Engine != tt.want {
				t.Errorf("engine is %q", r.Engine)
			}
			once(p, "a")
			wantAsked(t, e, tt.path)
			if s, _ := p.Status("a"); s.Engine != tt.want || s.Path != bare(tt.path) || s.Err != nil {
				t.Errorf("status is %+v", s)
			}
		})
	}
}

func TestFactsFillReports(t *testing.T) {
	e := newEngine(map[string]string{
		"/v1/models": owned("llamacpp"), "/metrics": llamaLoad, "/props": propsPage,
	})
	p, got := onePoller(t, e, Config{})
	once(p, "a")
	once(p, "a")
	wantTold(t, got.latest(t, "a"), map[string]float64{
		"running": 2, "slots": 2, "context_tokens": 100, "capacity_tokens": 200, "block_tokens": 1,
	})
	e.takeAsked()
	for range factsEvery {
		once(p, "a")
	}
	if asked := e.takeAsked(); !slices.Contains(asked, "/props") || len(asked) != factsEvery+1 {
		t.Errorf("asked for %q", asked)
	}
}

// TestFactsAreReadAgain after an event that may have changed them.
func TestFactsAreReadAgain(t *testing.T) {
	metrics := func(seconds string) string { return llamaLoad + "llamacpp:prompt_seconds_total " + seconds + "\n" }
	e := newEngine(map[string]string{"/metrics": metrics("5"), "/props": propsPage})
	p, got := onePoller(t, e, Config{Engine: "llamacpp"})
	once(p, "a")
	events := map[string]func(){
		"restart": func() { e.pages["/metrics"] = metrics("1"); once(p, "a") },
		"failure": func() { e.err = errors.New("reset"); once(p, "a"); e.err = nil },
	}
	for name, event := range events {
		e.pages["/props"] = strings.Replace(propsPage, `"total_slots":2`, `"total_slots":2`+strconv.Itoa(len(name)), 1)
		event()
		once(p, "a")
		if r := got.latest(t, "a"); r.Slots != float64(20+len(name)) {
			t.Errorf("%s: slots are %v", name, r.Slots)
		}
		e.pages["/metrics"] = metrics("5")
		once(p, "a")
	}
}

// TestFactsInTrouble do not keep the load from being read.
func TestFactsInTrouble(t *testing.T) {
	e := newEngine(map[string]string{"/metrics": llamaLoad, "/props": strings.Replace(propsPage, "{", `{"is_sleeping":true,`, 1)})
	p, got := onePoller(t, e, Config{Engine: "llamacpp"})
	once(p, "a")
	e.change(func() { e.status["/props"] = 500 })
	if !once(p, "a") {
		t.Fatal("the load page is not read")
	}
	if r := got.latest(t, "a"); r.Sleeping || r.Running != 2 || r.Slots != 2 {
		t.Errorf("report is %+v", r)
	}
}

// TestDeadReplica is asked for one page in a poll.
func TestDeadReplica(t *testing.T) {
	e := newEngine(nil)
	e.err = errors.New("connection refused")
	p, _ := onePoller(t, e, Config{Engine: "sglang"})
	once(p, "a")
	wantAsked(t, e, sglangLoadsPath)
}

// TestBetterPageIsFound when it appears after a worse one was settled for.
func TestBetterPageIsFound(t *testing.T) {
	e := newEngine(map[string]string{sglangLoadsPath: engineTests["SGLang, /v1/loads"].body})
	p, got := onePoller(t, e, Config{Engine: "sglang"})
	once(p, "a")
	e.change(func() { e.pages["/metrics"] = sglangPage })
	for range factsEvery {
		once(p, "a")
	}
	if r := got.latest(t, "a"); r.Running != 7 {
		t.Errorf("report is %+v", r)
	}
}

func TestDisabledMetrics(t *testing.T) {
	e := newEngine(map[string]string{"/slots": `[{"n_ctx":100,"is_processing":true}]`})
	e.status["/metrics"] = http.StatusNotImplemented
	p, _ := onePoller(t, e, Config{Engine: "llamacpp"})
	if !once(p, "a") {
		t.Error("llama.cpp without --metrics is not read")
	}
}

func TestRecogniseHeedsThePath(t *testing.T) {
	for body, path := range map[string]string{`{"models":[]}`: "/slots", vllmLoad: "/api/ps", propsPage: "/metrics"} {
		if d := recognise(dialects, path, []byte(body)); d != nil {
			t.Errorf("%s at %s is recognised as %s", body, path, d.engine)
		}
	}
}

// TestDrainedPage has a TensorRT-LLM that can only be recognised by draining
// its statistics. That happens once.
func TestDrainedPage(t *testing.T) {
	e := newEngine(map[string]string{"/metrics": ` [{"iterLatencyMS":3}]`})
	p, _ := onePoller(t, e, Config{})
	for range 5 {
		if once(p, "a") {
			t.Fatal("a drained page is taken for a report")
		}
	}
	n := 0
	for _, path := range e.takeAsked() {
		if path == "/metrics" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("/metrics was drained %d times", n)
	}
	e.change(func() { e.pages["/prometheus/metrics"] = trtllmPage })
	if !once(p, "a") {
		t.Error("the page that appeared is not found")
	}
}

// TestEngineChanges replaces the engine at an address by another.
func TestEngineChanges(t *testing.T) {
	e := newEngine(map[string]string{"/v1/models": owned("vllm"), "/metrics": vllmLoad})
	p, got := onePoller(t, e, Config{})
	once(p, "a")
	e.change(func() {
		e.pages = map[string]string{"/v1/models": owned("llamacpp"), "/metrics": llamaLoad, "/props": propsPage}
	})
	if once(p, "a") {
		t.Error("another engine's page is read")
	}
	if !once(p, "a") {
		t.Fatal("the new engine is not recognised")
	}
	if r := got.latest(t, "a"); r.Engine != "llamacpp" || !r.Restarted {
		t.Errorf("report is %+v", r)
	}
}

func TestGivenEngineStays(t *testing.T) {
	e := newEngine(map[string]string{"/v1/models": owned("vllm"), "/metrics": "no metrics"})
	p, got := onePoller(t, e, Config{Engine: "sglang"})
	for range 3 {
		once(p, "a")
	}
	if len(got.of("a")) != 0 {
		t.Error("another engine's page is read")
	}
	if s, _ := p.Status("a"); s.Engine != "sglang" || s.Failures != 3 || !errors.Is(s.Err, errAbsent) {
		t.Errorf("status is %+v", s)
	}
	e.change(func() { e.pages["/get_load"] = engineTests["SGLang, /get_load"].body })
	if !once(p, "a") {
		t.Error("a page that appeared is not found")
	}
}

func TestGivenPath(t *testing.T) {
	for _, engineName := range []string{"auto", "sglang"} {
		e := newEngine(map[string]string{"/load?x=1": engineTests["SGLang, /v1/loads"].body})
		p, got := onePoller(t, e, Config{Engine: engineName, Path: "/load?x=1"})
		once(p, "a")
		for _, path := range e.takeAsked() {
			if path == "/metrics" || path == "/prometheus/metrics" {
				t.Errorf("%s: asked for %s", engineName, path)
			}
		}
		if r := got.latest(t, "a"); r.Engine != "sglang" || r.Running != 5 {
			t.Errorf("%s: report is %+v", engineName, r)
		}
		if s, _ := p.Status("a"); s.Path != "/load" {
			t.Errorf("%s: path is %s", engineName, s.Path)
		}
	}
}

// TestTrouble has answers after which no further page is asked for.
func TestTrouble(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503} {
		e := newEngine(map[string]string{"/v1/models": owned("vllm"), "/metrics": vllmLoad})
		e.status["/v1/models"] = status
		p, _ := onePoller(t, e, Config{})
		if once(p, "a") {
			t.Errorf("status %d is taken for an answer", status)
		}
		wantAsked(t, e, "/v1/models")

		e.change(func() { clear(e.status) })
		once(p, "a")
		e.takeAsked()
		e.change(func() { e.status["/metrics"] = status })
		if once(p, "a") {
			t.Errorf("status %d is taken for an answer", status)
		}
		wantAsked(t, e, "/metrics")
		if s, _ := p.Status("a"); s.Engine != "vllm" {
			t.Errorf("after status %d the engine is forgotten", status)
		}
	}
}

// TestSleepingLlama is not woken by polls.
func TestSleepingLlama(t *testing.T) {
	asleep := `{"total_slots":2,"is_sleeping":true}`
	e := newEngine(map[string]string{"/v1/models": owned("llamacpp"), "/metrics": llamaLoad, "/props": asleep})
	p, got := onePoller(t, e, Config{})
	once(p, "a")
	once(p, "a")
	wantAsked(t, e, "/v1/models", "/props", "/props")
	if !got.latest(t, "a").Sleeping {
		t.Error("the report does not say that the replica sleeps")
	}
	e.change(func() { e.pages["/props"] = propsPage })
	once(p, "a")
	wantAsked(t, e, "/props", "/metrics")
	if r := got.latest(t, "a"); r.Sleeping || r.Running != 2 || r.Restarted {
		t.Errorf("report is %+v", r)
	}
}

func TestNewRefuses(t *testing.T) {
	e := newEngine(nil)
	if _, err := New(Config{Fetch: e.fetch, Engine: "vlm"}); err == nil || err.Error() != `engine "vlm" is unknown` {
		t.Errorf("error is %v", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a poller without a way to fetch is made")
	}
	for _, name := range Engines() {
		if _, err := New(Config{Fetch: e.fetch, Engine: name}); err != nil {
			t.Error(err)
		}
	}
}

func TestNoneAsksNothing(t *testing.T) {
	fetch := func(context.Context, string, string, http.Header) (*http.Response, error) {
		t.Error("a page is fetched")
		return nil, errors.New("no")
	}
	p := newPoller(t, Config{Fetch: fetch, Engine: "none", Path: "/metrics", Interval: 1})
	p.Start()
	p.Add("a")
	p.PollSoon("a")
	if p.Wants("a", "/metrics") {
		t.Error("a page is wanted")
	}
}
