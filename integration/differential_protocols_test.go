package integration

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// certificate returns a tls directive with a certificate of the test's own.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	certFile, keyFile := filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("tls %s %s\n", certFile, keyFile)
}

var trusting = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the proxy is the test's own

func h2cClient(*testing.T) http.RoundTripper {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols, DisableKeepAlives: true}
}

func h2Client(*testing.T) http.RoundTripper {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Transport{Protocols: protocols, DisableKeepAlives: true, TLSClientConfig: trusting.Clone()}
}

func h3Client(t *testing.T) http.RoundTripper {
	transport := &http3.Transport{TLSClientConfig: trusting.Clone()}
	t.Cleanup(func() { _ = transport.Close() })
	return transport
}

const h2c = "servers {\nprotocols h1 h2c\n}"

var protocolExchanges = map[string]exchange{
	"h2c":                   {body: chatBody(20_000), client: h2cClient, global: h2c},
	"h2c unsized":           {body: chatBody(20_000), chunked: true, client: h2cClient, global: h2c},
	"h2c empty":             {client: h2cClient, global: h2c},
	"h2c get":               {method: http.MethodGet, client: h2cClient, global: h2c},
	"h2c over max_prompt":   {body: chatBody(300_000), chunked: true, client: h2cClient, global: h2c},
	"h2c trailer":           {body: chatBody(20_000), chunked: true, change: withTrailer, client: h2cClient, global: h2c},
	"h2c max_size":          {body: chatBody(3000), chunked: true, client: h2cClient, global: h2c, site: maxSize(2000), wantStatus: 413},
	"h2":                    {body: chatBody(20_000), client: h2Client, tls: true},
	"h2 unsized":            {body: chatBody(20_000), chunked: true, client: h2Client, tls: true},
	"h2 over max_prompt":    {body: chatBody(300_000), client: h2Client, tls: true},
	"h3":                    {body: chatBody(20_000), client: h3Client, tls: true},
	"h3 unsized":            {body: chatBody(20_000), chunked: true, client: h3Client, tls: true},
	"h3 over max_prompt":    {body: chatBody(300_000), client: h3Client, tls: true},
	"h3 slow":               {body: chatBody(60_000), chunked: true, pause: 20 * time.Millisecond, client: h3Client, tls: true},
	"h3 retry":              {body: chatBody(20_000), client: h3Client, tls: true, failures: []failure{dropAtEnd}, handler: postRetries, replayed: true},
	"https with HTTP/1":     {body: chatBody(20_000), client: h1TLSClient, tls: true},
	"https, expect, HTTP/1": {body: chatBody(20_000), client: h1TLSClient, tls: true, change: setHeader("Expect", "100-continue")},
}

func h1TLSClient(*testing.T) http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: trusting.Clone(), ExpectContinueTimeout: time.Second}
}

const rawHead = " /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n" + marker + ": 1\r\n"

var rawExchanges = map[string]exchange{
	"websocket":            {raw: talkWebSocket("GET")},
	"upgrade by post":      {raw: talkWebSocket("POST")},
	"expect, slow client":  {raw: awaitContinue},
	"two on a connection":  {raw: pipelined},
	"chunk extensions":     {raw: say("POST"+rawHead+"Transfer-Encoding: chunked\r\n\r\n", "5;a=b\r\n{\"a\":\r\n002\r\n1}\r\n0\r\nX-T: 1\r\n\r\n")},
	"HTTP/1.0":             {raw: say("POST /v1/completions HTTP/1.0\r\nHost: 127.0.0.1\r\n"+marker+": 1\r\nContent-Length: 14\r\n\r\n", `{"prompt":"a"}`)},
	"leaves while sending": {raw: leave("POST" + rawHead + "Content-Length: 100000\r\n\r\n" + chatBody(50_000)), wantBroken: true},
	"leaves, chunked":      {raw: leave("POST" + rawHead + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + chatBody(4000)[:1000]), wantBroken: true},
	"leaves, long":         {raw: leave("POST" + rawHead + "Content-Length: 1000000\r\n\r\n" + chatBody(400_000)), wantBroken: true},
	"leaves, h2c":          {raw: leaveStream, global: h2c, wantBroken: true},
	"leaves at once":       {raw: leave("POST" + rawHead + "Content-Length: 1000\r\n\r\n"), wantBroken: true},
}

// dial opens a connection to the proxy that ends with the test.
func dial(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	return connection, bufio.NewReader(connection)
}

// status reads one answer and returns its status and body.
func status(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.Status, " ", string(body), err)
}

// say sends a request in two parts and returns the answer.
func say(parts ...string) func(*testing.T, string) string {
	return func(t *testing.T, address string) string {
		connection, in := dial(t, address)
		for _, part := range parts {
			if _, err := io.WriteString(connection, part); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		return status(t, in)
	}
}

// leave sends a beginning and goes.
func leave(beginning string) func(*testing.T, string) string {
	return func(t *testing.T, address string) string {
		connection, _ := dial(t, address)
		_, _ = io.WriteString(connection, beginning) // the proxy may have had enough
		time.Sleep(50 * time.Millisecond)
		_ = connection.Close()
		return ""
	}
}

// leaveStream sends a beginning over HTTP/2 and resets the stream.
func leaveStream(t *testing.T, address string) string {
	ctx, cancel := context.WithCancel(t.Context())
	body, send := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(marker, "1")
	gone := make(chan error, 1)
	go func() {
		_, err := h2cClient(t).RoundTrip(request)
		gone <- err
	}()
	go func() { _, _ = io.WriteString(send, chatBody(50_000)) }() // as much of it as is taken
	time.Sleep(50 * time.Millisecond)
	cancel()
	if err := <-gone; err == nil {
		t.Error("an answer to half a request")
	}
	return ""
}

// talkWebSocket upgrades a connection and sends a word both ways.
func talkWebSocket(method string) func(*testing.T, string) string {
	return func(t *testing.T, address string) string {
		connection, in := dial(t, address)
		_, _ = io.WriteString(connection, method+" /v1/realtime HTTP/1.1\r\nHost: 127.0.0.1\r\n"+marker+": 1\r\n"+
			"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(connection, "hello")
		word := make([]byte, 5)
		if _, err := io.ReadFull(in, word); err != nil {
			t.Fatal(err)
		}
		_ = connection.Close()
		return response.Status + string(word)
	}
}

// awaitContinue sends the body when it has been asked for.
func awaitContinue(t *testing.T, address string) string {
	connection, in := dial(t, address)
	body := chatBody(2000)
	_, _ = fmt.Fprintf(connection, "POST%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", rawHead, len(body))
	head, err := readHead(in)
	if err != nil || !strings.Contains(head, " 100 ") {
		t.Fatalf("not asked for the body: %q, %v", head, err)
	}
	_, _ = io.WriteString(connection, body)
	for { // both proxy and engine may ask
		answer := status(t, in)
		if !strings.HasPrefix(answer, "100") {
			return answer
		}
	}
}

// pipelined sends a request that is not kept, and then one that is, on the
// same connection.
func pipelined(t *testing.T, address string) string {
	connection, in := dial(t, address)
	first := strings.Replace("POST"+rawHead, marker, "X-None", 1)
	body := chatBody(2000)
	_, _ = fmt.Fprintf(connection, "%sContent-Length: %d\r\n\r\n%s", first, len(body), body)
	_, _ = fmt.Fprintf(connection, "POST%sContent-Length: %d\r\n\r\n%s", rawHead, len(body), body)
	return status(t, in) + status(t, in)
}
