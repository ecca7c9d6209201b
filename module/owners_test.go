package module

import (
	"strconv"
	"sync"
	"testing"
)

func TestOwnersRememberWhatWasUsedLast(t *testing.T) {
	var o owners
	for key := range uint64(10 * ownersPerGeneration) {
		o.set(key, strconv.FormatUint(key%7, 10))
		if key%1000 == 0 {
			o.get(0)
		}
		if n := len(o.recent) + len(o.older); n > 2*ownersPerGeneration {
			t.Fatalf("%d ids are remembered", n)
		}
	}
	const last = 10*ownersPerGeneration - 1
	for key := uint64(last); key > last-ownersPerGeneration; key-- {
		if replica, ok := o.get(key); !ok || replica != strconv.FormatUint(key%7, 10) {
			t.Fatalf("id %d from the end: %q, %v", last-key, replica, ok)
		}
	}
	if _, ok := o.get(1); ok {
		t.Error("an old id is still remembered")
	}
}

func TestOwnersKeepWhatIsUsed(t *testing.T) {
	var o owners
	o.set(0, "a")
	for key := range uint64(5 * ownersPerGeneration) {
		o.set(key+1, "b")
		if key%1000 == 0 {
			if _, ok := o.get(0); !ok {
				t.Fatalf("forgotten after %d others", key)
			}
		}
	}
}

func TestOwnersFromManySides(t *testing.T) {
	var o owners
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for key := range uint64(3 * ownersPerGeneration) {
				o.set(key, "a")
				o.get(key / 2)
			}
		})
	}
	group.Wait()
}
