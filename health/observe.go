package health

import (
	"bytes"
	"net/http"
	"slices"
	"time"
)

// Wants reports whether a page with this path, query included, is worth giving
// to Observe. For a path that no engine reports at, it takes no lock.
func (p *Poller) Wants(replica, path string) bool {
	if !slices.Contains(p.probes, path) {
		return false
	}
	r := p.replica(replica)
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.dialect == nil || r.source.dialect.loadPage(path) >= 0
}

// loadPage returns the index of the load page at a path, -1 if there is none.
func (d *dialect) loadPage(path string) int {
	for i, page := range d.load {
		if page.path == path {
			return i
		}
	}
	return -1
}

// Observe takes a page that somebody else got from a replica, with status 200,
// as a further sample. It was asked for at the given time, the header is the
// answer's, and the body is not kept. Observe returns whether the page was one
// that tells the load.
func (p *Poller) Observe(replica, path string, asked time.Time, header http.Header, body []byte) bool {
	r := p.replica(replica)
	if r == nil {
		return false
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	body, err := s.read(bytes.NewReader(body), header.Get("Content-Encoding"), p.config.MaxBytes)
	if err != nil {
		return false
	}
	ok, recovered := p.observe(r, path, asked, body, s)
	if recovered {
		p.PollSoon(replica)
	}
	return ok
}

func (p *Poller) observe(r *replica, path string, asked time.Time, body []byte, s *scratch) (ok, recovered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.source.dialect
	if d == nil {
		d = recognise(p.dialects, path, body)
	}
	if d == nil {
		return false, false
	}
	i := d.loadPage(path)
	if i < 0 || !d.load[i].into(&s.report, body) {
		return false, false
	}
	recovered = r.failures > 0
	r.source.dialect, r.source.page = d, i
	s.report.Engine = d.engine
	s.report.fill(&r.source.facts)
	p.succeed(r, s.report, asked)
	return true, recovered
}
