package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Fetch gets one page of a replica. The implementation chooses scheme, TLS and
// credentials, adds the given header fields without changing them, and gives
// up, also within the body, when the context ends. The path may have a query.
// Fetch is called concurrently.
type Fetch func(ctx context.Context, replica, path string, header http.Header) (*http.Response, error)

// Config says what a [Poller] does.
type Config struct {
	Fetch Fetch
	// Engine is one of [Engines]. Default: auto.
	Engine string
	// Path is where the load page is. Default: where the engine has it.
	Path string
	// Interval is the time between two polls of a replica; it varies by a
	// tenth. 0 or less: no polls, only pages given to Observe count.
	Interval time.Duration
	// Timeout bounds getting one page. Default: 2s.
	Timeout time.Duration
	// MaxBytes bounds a page, decoded. Default: 4 MiB.
	MaxBytes int
	// MaxInFlight bounds how many replicas are asked at the same time.
	// Replicas that failed last time take at most half of it. Default: 32.
	MaxInFlight int
	// Memory is what this poller shares with others of the same Engine and Path:
	// each hands on only its own reports, and none asks a replica that another
	// one has heard of within half an interval. Default: a memory of its own.
	Memory *Memory
	// OnReport is called with each report, in the order of time for one
	// replica, concurrently for several. It should return soon and must not
	// call the Poller's Observe, Status, Wants or Stop. After a replica is
	// removed, one last report may still come.
	OnReport func(replica string, r Report)
	// Logger gets one line whenever a replica's state changes. Default: none.
	Logger *zap.Logger
}

// Poller asks a changing set of replicas for their load pages. The runtime's
// timers are its schedule: it has no goroutine while no page is being read.
// Its methods may be called concurrently.
type Poller struct {
	config   Config
	number   int // in its memory
	dialects []*dialect
	probes   []string

	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	polls  sync.WaitGroup

	mu       sync.RWMutex
	replicas map[string]*replica
	state    lifecycle
	inFlight int
	suspects int // of these, replicas that failed last time
}

type lifecycle int8

const (
	idle lifecycle = iota
	running
	stopped
)

// New returns a poller that does nothing before Start.
func New(config Config) (*Poller, error) {
	dialects, err := dialectsOf(config)
	if err != nil {
		return nil, err
	}
	if config.Fetch == nil {
		return nil, errors.New("polling replicas: no way to fetch is given")
	}
	config.setDefaults()
	p := &Poller{
		config:   config,
		number:   config.Memory.number(),
		dialects: dialects,
		probes:   probes(dialects),
		replicas: make(map[string]*replica),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

func (c *Config) setDefaults() {
	if c.Engine == "" {
		c.Engine = engineAuto
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Second
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 4 << 20
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 32
	}
	if c.Memory == nil {
		c.Memory = NewMemory()
	}
	if c.OnReport == nil {
		c.OnReport = func(string, Report) {}
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
}

// dialectsOf returns the dialects that replicas may speak.
func dialectsOf(config Config) ([]*dialect, error) {
	var among []*dialect
	switch config.Engine {
	case "", engineAuto:
		among = dialects
	case engineNone:
	default:
		d := find(dialects, config.Engine)
		if d == nil {
			return nil, fmt.Errorf("engine %q is unknown", config.Engine)
		}
		among = []*dialect{d}
	}
	if config.Path == "" {
		return among, nil
	}
	moved := make([]*dialect, len(among))
	for i, d := range among {
		moved[i] = d.at(config.Path)
	}
	return moved, nil
}

// Start begins to poll. Each replica's first poll comes within a second, or
// within the interval if that is shorter.
func (p *Poller) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != idle {
		return
	}
	p.state = running
	for _, r := range p.replicas {
		p.arm(r, p.firstDelay())
	}
}

// Stop ends all polls and returns when none is under way. A stopped poller
// stays stopped.
func (p *Poller) Stop() {
	p.mu.Lock()
	p.state = stopped
	for name := range p.replicas {
		p.remove(name)
	}
	p.mu.Unlock()
	p.cancel()
	p.polls.Wait()
}

// Add begins to poll replicas that are not polled yet. For those that are, it
// costs no more than a look-up.
func (p *Poller) Add(replicas ...string) {
	for _, name := range replicas {
		p.mu.RLock()
		_, ok := p.replicas[name]
		p.mu.RUnlock()
		if !ok {
			p.mu.Lock()
			p.add(name)
			p.mu.Unlock()
		}
	}
}

// Remove forgets replicas.
func (p *Poller) Remove(replicas ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range replicas {
		p.remove(name)
	}
}

// Set makes the given replicas those that are polled.
func (p *Poller) Set(replicas ...string) {
	wanted := make(map[string]bool, len(replicas))
	for _, name := range replicas {
		wanted[name] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.replicas {
		if !wanted[name] {
			p.remove(name)
		}
	}
	for name := range wanted {
		p.add(name)
	}
}

func (p *Poller) add(name string) {
	if p.replicas[name] != nil || p.state == stopped {
		return
	}
	r := p.newReplica(name)
	p.replicas[name] = r
	if p.state == running {
		p.arm(r, p.firstDelay())
	}
}

func (p *Poller) remove(name string) {
	if r := p.replicas[name]; r != nil {
		r.disarm()
		delete(p.replicas, name)
		p.config.Memory.release(r.record)
	}
}

// PollSoon brings the next poll of a replica forward, for example because it
// is known to have come back.
func (p *Poller) PollSoon(replica string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.replicas[replica]; r != nil && p.state == running {
		r.hurry = r.polling
		p.arm(r, p.soon())
	}
}

// Status returns what is known of a replica and false if it is not polled.
func (p *Poller) Status(replica string) (Status, bool) {
	r := p.replica(replica)
	if r == nil {
		return Status{}, false
	}
	return r.status(), true
}

// Statuses returns what is known of all replicas, by name.
func (p *Poller) Statuses() map[string]Status {
	p.mu.RLock()
	replicas := slices.Collect(maps.Values(p.replicas))
	p.mu.RUnlock()
	all := make(map[string]Status, len(replicas))
	for _, r := range replicas {
		all[r.name] = r.status()
	}
	return all
}

func (p *Poller) replica(name string) *replica {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.replicas[name]
}
