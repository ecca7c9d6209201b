// Package refuse has addresses for tests that refuse connections.
package refuse

import (
	"net"
	"testing"
)

// Address returns a loopback address that refuses connections until the test
// ends. The port is taken by the client's end of a connection, so that nobody
// else comes to listen there meanwhile.
func Address(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection.LocalAddr().String()
}
