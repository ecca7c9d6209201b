package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"
)

// marker is the header of requests that recorders keep; what a proxy asks on
// its own account is answered 404.
const marker = "X-Case"

// arrival is a request as it arrived on the wire, but for the boundaries of
// its chunks.
type arrival struct {
	Head    string // request line and header lines, in their order
	Body    string
	Trailer string
	Broken  bool   // the request ended before its time
	After   string // the first upgradeBytes that came after an upgrade
}

// upgradeBytes is what clients send after an upgrade; what follows is said by
// Caddy when it stops.
const upgradeBytes = 5

// recorders are upstreams that keep what arrives and answer with a little
// JSON. They share what they have kept, and the plan of their failures.
type recorders struct {
	addresses []string

	mu       sync.Mutex
	cond     *sync.Cond
	busy     int // requests that are arriving
	arrived  []arrival
	failures []failure
}

// failure is what happens to a request instead of an answer.
type failure int

const (
	dropAtOnce  failure = iota // after its header
	dropAtEnd                  // when it has been read
	unavailable                // status 503 when it has been read
)

func startRecorders(t *testing.T, n int) *recorders {
	t.Helper()
	r := new(recorders)
	r.cond = sync.NewCond(&r.mu)
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		r.addresses = append(r.addresses, listener.Addr().String())
		go r.accept(listener)
	}
	return r
}

// plan sets what happens to the next requests, whoever gets them.
func (r *recorders) plan(failures []failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append([]failure(nil), failures...)
}

// take waits until nothing is arriving and returns what has arrived.
func (r *recorders) take() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.busy > 0 {
		r.cond.Wait()
	}
	taken := r.arrived
	r.arrived = nil
	return taken
}

func (r *recorders) accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go r.serve(connection)
	}
}

// serve answers the requests of one connection.
func (r *recorders) serve(connection net.Conn) {
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(connection)
	for {
		head, err := readHead(in)
		if err != nil {
			return
		}
		if !strings.Contains(head, "\r\n"+marker+": ") {
			new(arrival).read(parseHead(head), in)
			_, _ = io.WriteString(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
			continue
		}
		if !r.answer(head, in, connection) {
			return
		}
	}
}

// answer reads a marked request, keeps it and answers. It reports whether the
// connection goes on.
func (r *recorders) answer(head string, in *bufio.Reader, out net.Conn) bool {
	r.mu.Lock()
	r.busy++
	planned := failure(-1)
	if len(r.failures) > 0 {
		planned, r.failures = r.failures[0], r.failures[1:]
	}
	r.mu.Unlock()

	a := arrival{Head: head}
	goesOn := a.serve(planned, in, out)

	r.mu.Lock()
	defer r.mu.Unlock()
	if planned < 0 {
		r.arrived = append(r.arrived, a)
	}
	r.busy--
	r.cond.Broadcast()
	return goesOn
}

func (a *arrival) serve(planned failure, in *bufio.Reader, out net.Conn) bool {
	header := parseHead(a.Head)
	if header.Get("Expect") != "" {
		_, _ = io.WriteString(out, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	if planned == dropAtOnce {
		return false
	}
	if header.Get("Upgrade") != "" {
		a.echo(in, out)
		return false
	}
	a.read(header, in)
	switch {
	case planned == dropAtEnd || a.Broken:
		return false
	case planned == unavailable:
		_, _ = io.WriteString(out, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		return true
	}
	a.reply(out)
	return true
}

// reply answers with JSON, or with its header alone.
func (a *arrival) reply(out io.Writer) {
	body := `{"object":"answer","usage":{"prompt_tokens":3}}`
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	if strings.HasPrefix(a.Head, "HEAD ") {
		body = ""
	}
	_, _ = io.WriteString(out, head+body)
}

// read reads the body in the framing that the header announces.
func (a *arrival) read(header http.Header, in *bufio.Reader) {
	var body []byte
	var err error
	if header.Get("Transfer-Encoding") == "chunked" {
		if body, err = io.ReadAll(httputil.NewChunkedReader(in)); err == nil {
			a.Trailer, err = readHead(in)
		}
	} else {
		length := 0
		_, _ = fmt.Sscan(header.Get("Content-Length"), &length)
		body = make([]byte, length)
		var n int
		n, err = io.ReadFull(in, body)
		body = body[:n]
	}
	a.Body, a.Broken = string(body), err != nil
}

// echo upgrades the connection and sends back what arrives, to its end.
func (a *arrival) echo(in io.Reader, out net.Conn) {
	_, _ = io.WriteString(out, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	var after bytes.Buffer
	_, _ = io.Copy(io.MultiWriter(out, &after), in)
	a.After = string(after.Next(upgradeBytes))
}

// readHead reads lines up to an empty one.
func readHead(in *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line == "\r\n" {
			return head.String(), nil
		}
		head.WriteString(line)
	}
}

func parseHead(head string) http.Header {
	header := make(http.Header)
	for _, line := range strings.Split(head, "\r\n")[1:] {
		if name, value, ok := strings.Cut(line, ": "); ok {
			header.Add(name, value)
		}
	}
	return header
}
