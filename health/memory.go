package health

import (
	"math"
	"sync"
	"time"
)

// Memory lets pollers that ask the same replicas for the same pages know of
// each other's reports: one that takes the place of another recognises a
// restart in between, and of several at the same time only one asks. Its
// methods may be called concurrently.
type Memory struct {
	mu      sync.Mutex
	records map[recordKey]*record
	pollers int // that ever used it
}

// recordKey keeps reports apart that cannot be compared with each other.
type recordKey struct{ replica, engine, path string }

// remembrance is how long a record lasts that no poller uses.
const remembrance = time.Hour

// record is what is known of one replica from its reports.
type record struct {
	users int       // pollers that have the replica, guarded by the memory's lock
	left  time.Time // when the last of them let go of it

	// mu also puts the calls of OnReport in order.
	mu        sync.Mutex
	last      Report // its At is zero before the first report
	lastPage  string
	arrived   time.Time // when the last report was complete
	by        int       // number of the poller that got it
	started   float64   // latest start time seen
	restarted time.Time // when a restart was seen last
}

// NewMemory returns a memory that knows nothing.
func NewMemory() *Memory {
	return &Memory{records: make(map[recordKey]*record)}
}

// number tells pollers apart without keeping them alive.
func (m *Memory) number() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pollers++
	return m.pollers
}

func (m *Memory) acquire(key recordKey) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[key]
	if r == nil {
		m.sweep()
		r = &record{started: math.NaN(), last: unknown()}
		m.records[key] = r
	}
	r.users++
	return r
}

func (m *Memory) release(r *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.users--
	r.left = time.Now()
}

// sweep forgets what nobody has used for long. It runs when a record is made.
func (m *Memory) sweep() {
	for key, r := range m.records {
		if r.users == 0 && time.Since(r.left) > remembrance {
			delete(m.records, key)
		}
	}
}

// heardByOther tells how long ago a poller other than the given one got a report.
func (r *record) heardByOther(number int) (age time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == 0 || r.by == number {
		return 0, false
	}
	return time.Since(r.arrived), true
}
