// Package loopback finds ports for servers of demos and tests.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Where Listen looks: Linux hands out ports from 32768 on, others from 49152.
const (
	firstPort = 20000
	lastPort  = 32767
	tries     = 100
)

// Listen listens on a loopback port below those that systems hand out by
// themselves, to outgoing connections too, so that it stays free when the
// listener is closed until somebody listens there again.
func Listen() (net.Listener, error) {
	var err error
	for range tries {
		var listener net.Listener
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort+1))
		if listener, err = net.Listen("tcp", address); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("looking for a free port: %w", err)
}

// FreeAddress returns an address at which Listen could listen a moment ago.
func FreeAddress() (string, error) {
	listener, err := Listen()
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
