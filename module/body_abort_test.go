package module

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/internal/refuse"
)

// dialRaw opens a connection to a Caddy and sends a request's beginning.
func dialRaw(t *testing.T, address, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

// rawPost returns the beginning of a request with the given header lines and
// the first bytes of its body.
func rawPost(header, body string) string {
	return "POST /v1/chat/completions HTTP/1.1\r\nHost: engines.test\r\n" + header + "\r\n" + body
}

// Clients that leave in the middle of their upload leave nothing behind, and no
// engine takes what it got for a whole request.
func TestClientLeavesDuringUpload(t *testing.T) {
	beginnings := map[string]string{
		"sized":              rawPost("Content-Length: 100000\r\n", string(randomBytes(50_000))),
		"chunked":            rawPost("Transfer-Encoding: chunked\r\n", "1388\r\n"+string(randomBytes(5000))+"\r\n"),
		"over limit":         rawPost("Content-Length: 1000000\r\n", string(randomBytes(500_000))),
		"nothing of it sent": rawPost("Content-Length: 100000\r\n", ""),
	}
	for name, beginning := range beginnings {
		t.Run(name, func(t *testing.T) {
			p := newProbe(t, probeLimit)
			e := runEngine(t, nil)
			caddy := runCaddy(t, object{"routes": route(proxyTo(t, e.address))})
			conn := dialRaw(t, caddy, beginning)
			awaitTrue(t, "reading", func() bool { return p.budget.used.Load() > 0 })
			_ = conn.Close()
			awaitTrue(t, "replica chosen", func() bool { _, _, a := p.selected(); return len(a) == 1 })
			p.awaitFreed(t)
			_, complete, attempts := p.selected()
			if complete[0] {
				t.Error("half a body is called complete")
			}
			awaitTrue(t, "attempt failed", func() bool { return fmt.Sprint(attempts[0].heard()) == "[failed]" })
			if err := attempts[0].error(); !errors.Is(err, errRequestBody) {
				t.Errorf("failure blamed on the replica: %v", err)
			}
			if e.count.Load() > 0 {
				if got := e.received(t); got.err == nil {
					t.Errorf("engine took %d bytes for a whole body", len(got.body))
				}
			}
		})
	}
}

// A client that stalls is told so.
func TestClientStalls(t *testing.T) {
	beginnings := map[string]string{
		"sized":   rawPost("Content-Length: 100000\r\n", string(randomBytes(5000))),
		"chunked": rawPost("Transfer-Encoding: chunked\r\n", "1388\r\n"+string(randomBytes(5000))+"\r\n"),
	}
	for name, beginning := range beginnings {
		t.Run(name, func(t *testing.T) {
			p := newProbe(t, probeLimit)
			e := runEngine(t, nil)
			status := func(proxy object) int {
				server := object{"routes": route(proxy), "read_idle_timeout": "100ms"}
				conn := dialRaw(t, runCaddy(t, server), beginning)
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				return res.StatusCode
			}
			// Without reading ahead it is 504 or 499, as it happens.
			if got := status(proxyTo(t, e.address)); got != 504 {
				t.Errorf("status %d, want 504", got)
			}
			p.awaitFreed(t)
		})
	}
}

// Once the body is there, the server's deadline for stalled uploads does not
// end a request that waits for a replica. The client sends all in one piece, so
// that no slow machine makes it stall.
func TestWaitingOutlastsIdleTimeout(t *testing.T) {
	sent := string(randomBytes(20_000))
	for _, request := range []string{
		rawPost("Content-Length: 20000\r\n", sent),
		rawPost("Transfer-Encoding: chunked\r\n", "4e20\r\n"+sent+"\r\n0\r\n\r\n"),
	} {
		p := newProbe(t, probeLimit)
		e := runEngine(t, nil)
		proxy := proxyTo(t, refuse.Address(t), e.address)
		balancing := proxy["load_balancing"].(object)
		balancing["retries"], balancing["try_interval"] = 1, "400ms"
		conn := dialRaw(t, runCaddy(t, object{"routes": route(proxy), "read_idle_timeout": "100ms"}), request)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 200 {
			t.Fatalf("status %d", res.StatusCode)
		}
		if got := e.received(t); string(got.body) != sent {
			t.Errorf("engine got %d bytes", len(got.body))
		}
		p.awaitFreed(t)
	}
}

// A slow engine, that leaves most of the body in the transport's hands for
// longer than the server's deadline for stalled uploads, does not end it either.
func TestSendingOutlastsIdleTimeout(t *testing.T) {
	p := newProbe(t, 32<<20)
	sent := randomBytes(16 << 20)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(1500 * time.Millisecond)
		got, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("engine got %d bytes, %v", len(got), err)
		}
	})
	// The client's own pauses on a slow machine are shorter than this.
	caddy := runCaddy(t, object{"routes": route(proxyTo(t, address)), "read_idle_timeout": "1s"})
	if res := post(t, caddy, bytes.NewReader(sent)); res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
	p.awaitFreed(t)
}

// What a replica does in the middle of an upload is not blamed on the client.
func TestReplicaDropsDuringUpload(t *testing.T) {
	p := newProbe(t, probeLimit)
	caddy := runCaddy(t, object{"routes": route(proxyTo(t, runBrokenEngine(t, 200_000)))})
	for range 10 {
		// The answer may be lost, as Caddy closes the connection on the rest.
		body := bytes.NewReader(randomBytes(4_000_000))
		if res, err := http.Post("http://"+caddy, "application/json", body); err == nil {
			_ = res.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
	p.awaitFreed(t)
	_, _, attempts := p.selected()
	for _, a := range attempts {
		if err := a.error(); err == nil || errors.Is(err, errRequestBody) {
			t.Errorf("failure blamed on the client: %v", err)
		}
	}
}
