package module

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/internal/refuse"
)

const (
	roleEvent    = `data: {"id":"c1","choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	contentEvent = `data: {"id":"c1","choices":[{"delta":{"content":"hello"}}]}` + "\n\n"
	usageEvent   = `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,` +
		`"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\n"
	doneEvent = "data: [DONE]\n\n"
)

// steppingEngine answers with events, each when the test asks for it.
func steppingEngine(t *testing.T, kind string) (address string, step func(event string)) {
	steps, written := make(chan string), make(chan struct{})
	e := runEngine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event := <-steps:
				if event == "" {
					return
				}
				if event == "drop" {
					panic(http.ErrAbortHandler)
				}
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
				written <- struct{}{}
			case <-r.Context().Done():
				return
			}
		}
	})
	return e.address, func(event string) {
		steps <- event
		if event != "" && event != "drop" {
			<-written
		}
	}
}

// Events reach the client one by one, are noticed as they pass, and the copy
// of the request's body is given back while the answer is still coming.
func TestStreamPassesThrough(t *testing.T) {
	p := newProbe(t, 1<<20)
	address, step := steppingEngine(t, "text/event-stream")
	caddy := runCaddy(t, object{"routes": route(proxyTo(t, address))})
	res := post(t, caddy, bytes.NewReader(randomBytes(100_000)))
	_, _, attempts := p.selected()
	a := attempts[0]
	for _, event := range []string{roleEvent, contentEvent, usageEvent, doneEvent} {
		step(event)
		got := make([]byte, len(event))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != event {
			t.Fatalf("got %q, %v", got, err)
		}
		p.awaitFreed(t)
	}
	step("")
	if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil {
		t.Errorf("got %q, %v at the end", rest, err)
	}
	awaitTrue(t, "ended", func() bool { return fmt.Sprint(a.heard()) == "[headers firstToken usage ended]" })
	want := usage{promptTokens: 9, cachedTokens: 4, cachedKnown: true, outputTokens: 1, responseID: "c1"}
	if a.last != want || a.status != 200 {
		t.Errorf("got status %d, %+v", a.status, a.last)
	}
}

// The first token is reported when it passes, not before.
func TestFirstTokenInTime(t *testing.T) {
	p := newProbe(t, 1<<20)
	address, step := steppingEngine(t, "text/event-stream")
	caddy := runCaddy(t, object{"routes": route(proxyTo(t, address))})
	res := post(t, caddy, strings.NewReader("{}"))
	_, _, attempts := p.selected()
	pass := func(event string) {
		step(event)
		_, _ = io.ReadFull(res.Body, make([]byte, len(event)))
	}
	pass(roleEvent)
	if got := fmt.Sprint(attempts[0].heard()); got != "[headers]" {
		t.Errorf("after the role: %v", got)
	}
	pass(contentEvent)
	if got := fmt.Sprint(attempts[0].heard()); got != "[headers firstToken]" {
		t.Errorf("after the first content: %v", got)
	}
	step("")
}

func TestAnswerFails(t *testing.T) {
	t.Run("engine drops", func(t *testing.T) {
		p := newProbe(t, 1<<20)
		address, step := steppingEngine(t, "text/event-stream")
		caddy := runCaddy(t, object{"routes": route(proxyTo(t, address))})
		res := post(t, caddy, strings.NewReader("{}"))
		step(contentEvent)
		step("drop")
		if _, err := io.ReadAll(res.Body); err == nil {
			t.Error("client sees a whole answer")
		}
		_, _, attempts := p.selected()
		a := attempts[0]
		awaitTrue(t, "failed", func() bool { return fmt.Sprint(a.heard()) == "[headers firstToken usage failed]" })
		if err := a.error(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("failed with %v", err)
		}
	})
	t.Run("client leaves", func(t *testing.T) {
		p := newProbe(t, 1<<20)
		address, step := steppingEngine(t, "text/event-stream")
		caddy := runCaddy(t, object{"routes": route(proxyTo(t, address))})
		res := post(t, caddy, strings.NewReader("{}"))
		step(contentEvent)
		_ = res.Body.Close()
		_, _, attempts := p.selected()
		a := attempts[0]
		awaitTrue(t, "failed", func() bool { return strings.HasSuffix(fmt.Sprint(a.heard()), "failed]") })
		if err := a.error(); !errors.Is(err, context.Canceled) {
			t.Errorf("failed with %v", err)
		}
	})
	t.Run("proxy retries", func(t *testing.T) {
		p := newProbe(t, 1<<20)
		proxy := proxyTo(t, runBusyEngine(t), runEngine(t, nil).address)
		balancing := proxy["load_balancing"].(object)
		balancing["retries"] = 1
		balancing["retry_match"] = []object{{"expression": "{http.reverse_proxy.status_code} == 503"}}
		res := post(t, runCaddy(t, object{"routes": route(proxy)}), strings.NewReader("{}"))
		_, _ = io.ReadAll(res.Body)
		_, _, attempts := p.selected()
		if got := fmt.Sprint(attempts[0].heard()); got != "[headers failed]" || attempts[0].status != 503 {
			t.Errorf("first attempt heard %v, status %d", got, attempts[0].status)
		}
		if err := attempts[0].error(); !errors.Is(err, errResponseClosed) {
			t.Errorf("failed with %v", err)
		}
		awaitTrue(t, "ended", func() bool { return fmt.Sprint(attempts[1].heard()) == "[headers usage ended]" })
	})
	t.Run("nobody there", func(t *testing.T) {
		p := newProbe(t, 1<<20)
		post(t, runCaddy(t, object{"routes": route(proxyTo(t, refuse.Address(t)))}), strings.NewReader("{}"))
		_, _, attempts := p.selected()
		if got := fmt.Sprint(attempts[0].heard()); got != "[failed]" {
			t.Errorf("heard %v", got)
		}
	})
}

// An upgraded connection is passed on as it is.
func TestUpgradePassesThrough(t *testing.T) {
	p := newProbe(t, 1<<20)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	})
	caddy := runCaddy(t, object{"routes": route(proxyTo(t, address))})
	conn := dialRaw(t, caddy, "GET /v1/realtime HTTP/1.1\r\nHost: engines.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatalf("got %+v, %v", res, err)
	}
	for range 3 {
		_, _ = io.WriteString(conn, "ping\n")
		if line, err := in.ReadString('\n'); line != "ping\n" {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	_, _, attempts := p.selected()
	if got := fmt.Sprint(attempts[0].heard()); got != "[headers ended]" {
		t.Errorf("heard %v", got)
	}
}

// Active health checks pass through unharmed, and those of interest are heard.
func TestHealthChecksAreHeard(t *testing.T) {
	p := newProbe(t, 1<<20)
	page := strings.Repeat("vllm:num_requests_running 1\n", 1000)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Engine", "test")
		_, _ = io.WriteString(w, page)
	})
	answers := make(chan healthAnswer, 100)
	p.health = &healthWatch{
		wants:  func(dial, uri string) bool { return dial == address && uri == "/metrics?x=1" },
		report: func(a healthAnswer) { answers <- a },
	}
	proxy := proxyTo(t, address)
	proxy["health_checks"] = object{"active": object{"uri": "/metrics?x=1", "interval": "1h"}}
	begun := time.Now()
	caddy := runCaddy(t, object{"routes": route(proxy)})
	got := <-answers
	if got.dial != address || got.uri != "/metrics?x=1" || got.asked.Before(begun) || got.asked.After(time.Now()) ||
		got.header.Get("X-Engine") != "test" || string(got.body) != page {
		t.Errorf("heard %d bytes of %q from %s, asked %s", len(got.body), got.uri, got.dial, got.asked)
	}
	if res := post(t, caddy, strings.NewReader("{}")); res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
	if len(answers) > 0 {
		t.Error("a client's request was heard as a health check")
	}
}

// A page too long to keep is passed on whole and not reported.
func TestHealthAnswerIsBounded(t *testing.T) {
	watch := &healthWatch{report: func(a healthAnswer) { t.Errorf("reported %d bytes", len(a.body)) }}
	page := bytes.NewReader(make([]byte, maxHealthAnswer+1))
	body := &healthBody{ReadCloser: io.NopCloser(page), watch: watch}
	if n, err := io.Copy(io.Discard, body); n != maxHealthAnswer+1 || err != nil {
		t.Errorf("passed on %d bytes, %v", n, err)
	}
	if body.kept.Cap() > 0 {
		t.Errorf("still keeps %d bytes", body.kept.Cap())
	}
}
