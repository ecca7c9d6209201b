package health

import (
	"time"

	"go.uber.org/zap"
)

// replica is what a poller keeps of one replica.
type replica struct {
	name string

	// Guarded by the poller's lock.
	timer   *time.Timer
	polling bool
	hurry   bool // to poll again as soon as the poll under way has ended

	*record // its lock guards the fields below

	source   source
	failures int   // in a row
	err      error // of the last failure, nil after a success
	changed  time.Time
}

// quiet is how long a replica must not have restarted before it is said again.
const quiet = time.Minute

// Status is what a [Poller] knows of one replica.
type Status struct {
	// Engine and Path say where the replica's load is found, without a query;
	// Engine is empty while it is not known. Path is empty too while another
	// poller does the asking.
	Engine, Path string
	// Failures counts polls that failed in a row, and Err says why the last
	// one did; it is nil if that succeeded.
	Failures int
	Err      error
	// Since is when the replica last began or ceased to answer.
	Since time.Time
	// Report is the latest one. Its At is zero if there was none.
	Report Report
}

func (p *Poller) newReplica(name string) *replica {
	key := recordKey{name, p.config.Engine, p.config.Path}
	r := &replica{name: name, record: p.config.Memory.acquire(key)}
	r.source.facts = unknown()
	if len(p.dialects) == 1 {
		r.source.dialect = p.dialects[0]
	}
	return r
}

func (r *replica) status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Engine: r.last.Engine, Failures: r.failures, Err: r.err, Since: r.changed, Report: r.last}
	if d := r.source.dialect; d != nil {
		s.Engine, s.Path = d.engine, bare(d.load[r.source.page].path)
	}
	return s
}

func (r *replica) failing() bool { return r.failuresInARow() > 0 }

func (r *replica) failuresInARow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}

// poll asks a replica once. The lock is not held meanwhile.
func (p *Poller) poll(r *replica) {
	r.mu.Lock()
	src := r.source
	r.mu.Unlock()

	s := scratches.Get().(*scratch)
	defer s.release()
	asked := time.Now()
	err := asker{p, s, r.name}.poll(p.ctx, &src)

	r.mu.Lock()
	defer r.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	r.source = src
	if err != nil {
		p.fail(r, err)
		return
	}
	p.succeed(r, s.report, asked)
}

// fail takes note of a poll that gave nothing. The replica's lock is held.
func (p *Poller) fail(r *replica, err error) {
	r.failures++
	r.source.fresh = 0
	if r.err == nil {
		r.changed = time.Now()
		p.config.Logger.Warn("replica does not report its load",
			zap.String("replica", r.name), zap.Error(err))
	}
	r.err = err
}

// succeed takes in a report that was asked for at the given time. One that was
// under way together with the report before is dropped, as there is no telling
// which of the two is the older. The replica's lock is held.
func (p *Poller) succeed(r *replica, report Report, asked time.Time) {
	p.noteSuccess(r, report.Engine)
	if asked.Before(r.arrived) {
		return
	}
	path := r.source.dialect.load[r.source.page].path
	report.At = asked
	report.Restarted = !r.last.At.IsZero() && report.RestartedSince(r.before(path))
	if report.Restarted {
		p.noteRestart(r, report.Engine)
	}
	if Known(report.StartTime) && !(report.StartTime < r.started) {
		r.started = report.StartTime
	}
	r.last, r.lastPage, r.arrived, r.by = report, path, time.Now(), p.number
	p.config.OnReport(r.name, report)
}

// noteRestart says so once when restarts follow each other closely, as they
// seem to where several engines answer at one address in turn.
func (p *Poller) noteRestart(r *replica, engine string) {
	r.source.fresh = 0
	if time.Since(r.restarted) > quiet {
		p.config.Logger.Info("replica restarted",
			zap.String("replica", r.name), zap.String("engine", engine))
	}
	r.restarted = time.Now()
}

// before returns the last report in the form that the next one, from the given
// path, is to be compared with.
func (r *replica) before(path string) Report {
	before := r.last
	if path != r.lastPage {
		before = unknown()
		before.Engine = r.last.Engine
	}
	before.StartTime = r.started
	return before
}

func (p *Poller) noteSuccess(r *replica, engine string) {
	if r.changed.IsZero() {
		r.changed = time.Now()
	}
	if r.failures > 0 || r.last.At.IsZero() || r.last.Engine != engine {
		r.changed = time.Now()
		p.config.Logger.Info("replica reports its load",
			zap.String("replica", r.name), zap.String("engine", engine))
	}
	r.failures, r.err = 0, nil
}
