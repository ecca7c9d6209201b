package loopback

import (
	"net"
	"testing"
)

func TestPortsAreTheListenersOwn(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		listener, err := Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		address := listener.Addr().(*net.TCPAddr)
		if port := address.Port; !address.IP.IsLoopback() || port < firstPort || port > lastPort {
			t.Errorf("listens at %v", address)
		}
		if seen[address.String()] {
			t.Errorf("two listen at %v", address)
		}
		seen[address.String()] = true
	}
}

func TestFreeAddressIsFree(t *testing.T) {
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
