package refuse

import (
	"net"
	"testing"
)

func TestAddressRefuses(t *testing.T) {
	address := Address(t)
	for range 3 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			t.Fatalf("%s takes connections", address)
		}
	}
}
