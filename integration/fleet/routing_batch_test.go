package fleet

import (
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// What a replica holds is not free where a deep batch decodes: a short prompt
// that one replica holds goes to an idle one that does not, a very long one stays.
func TestRoutingPastADeepBatch(t *testing.T) {
	const warm, cold = "warm", "cold"
	for _, c := range []struct {
		name     string
		tokens   int
		decoding int
		want     string
	}{
		{"short, nothing else to do", 600, 0, warm},
		{"short, deep batch", 600, 150, cold},
		{"very long, deep batch", 100_000, 150, warm},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := selection.NewFleet(selection.NewMapStore(), 1)
			now := origin
			place := func(key uint64, tokens int, candidates ...string) *selection.Booking {
				return f.Place(now, &selection.Request{
					Model: model, Tokens: tokens, Streamed: true,
					Blocks: []selection.Block{{Key: key, Tokens: uint32(tokens)}},
				}, candidates)
			}
			answered := place(1, c.tokens, warm)
			now = now.Add(20 * time.Second)
			answered.FirstToken(now)
			answered.End(now, selection.Usage{Output: 100})
			for i := range c.decoding {
				b := place(uint64(i+2), 500, warm)
				now = now.Add(20 * time.Millisecond)
				b.FirstToken(now)
			}
			if b := place(1, c.tokens, warm, cold); b.Estimate.Replica != c.want {
				t.Errorf("sent to %s, considered %+v", b.Estimate.Replica, b.Considered)
			}
		})
	}
}
