package module

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed5db0839e/caddy-cache-aware/health"
	"github.com/seed5db0839e/caddy-cache-aware/selection"
	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// minIndexMemory is the least that makes a working index, in bytes.
const minIndexMemory = selection.MinStoreBytes

// minCacheCapacity is the least size of a KV cache, in tokens. Less was meant in
// another unit, and would let nothing be remembered.
const minCacheCapacity = 1024

// bodyMemory bounds all copies of request bodies together, in bytes. Beyond it
// bodies stream through after their first kilobytes.
const bodyMemory = 512 << 20

// states holds what is known of replicas, by name. It outlives single
// configurations: a reload acquires the new policy's share before the old one
// lets go of its own.
var states = caddy.NewUsagePool()

// state is what policies of one name share.
type state struct {
	fleet     *selection.Fleet
	secret    uint64 // root of every key chain, so that keys mean nothing elsewhere
	bodies    *bodyBudget
	owners    owners
	decisions decisions
	recording atomic.Pointer[recording] // nil while nobody reads one
	ratios    tokenizer.Ratios
	loads     *health.Memory

	mu      sync.Mutex
	watches map[*loadWatch]bool // of running policies
}

func newState(indexMemory int64) (*state, error) {
	store, err := selection.NewRistrettoStore(indexMemory)
	if err != nil {
		return nil, fmt.Errorf("making residency index of %d bytes: %w", indexMemory, err)
	}
	var seed [16]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("drawing secret: %w", err)
	}
	return &state{
		fleet:  selection.NewFleet(store, binary.LittleEndian.Uint64(seed[:8])),
		secret: binary.LittleEndian.Uint64(seed[8:]),
		bodies: newBodyBudget(bodyMemory),
		loads:  health.NewMemory(),

		watches: make(map[*loadWatch]bool),
	}, nil
}

// Destruct frees the index when the last policy is gone, and ends a recording.
// Requests that are still in flight then find the index empty.
func (s *state) Destruct() error {
	if recording := s.recording.Swap(nil); recording != nil {
		close(recording.gone)
	}
	return s.fleet.Close()
}

func (c *CacheAware) acquireState() error {
	value, _, err := states.LoadOrNew(c.Name, func() (caddy.Destructor, error) {
		return newState(c.IndexMemory)
	})
	if err != nil {
		return err
	}
	c.state, c.acquired = value.(*state), true
	return nil
}

// releaseState gives back what acquireState took, if it did. The pointer
// stays: a retry of an old request may still call Select.
func (c *CacheAware) releaseState() error {
	if !c.acquired {
		return nil
	}
	c.acquired = false
	_, err := states.Delete(c.Name)
	return err
}
