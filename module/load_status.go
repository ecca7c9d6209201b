package module

import "github.com/seed5db0839e/caddy-cache-aware/health"

// loadStatuses tells what the replicas say of their load, by dial address. Of
// several policies that ask the same replica, the best informed counts. A replica
// that never answered has a status too, and one that is not asked has none.
func (s *state) loadStatuses() map[string]health.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := make(map[string]health.Status)
	for w := range s.watches {
		for dial, status := range w.poller.Statuses() {
			if known, ok := best[dial]; !ok || better(status, known) {
				best[dial] = status
			}
		}
	}
	return best
}

// better tells whether a says more of a replica than b.
func better(a, b health.Status) bool {
	if (a.Err == nil) != (b.Err == nil) {
		return a.Err == nil
	}
	if !a.Report.At.Equal(b.Report.At) {
		return a.Report.At.After(b.Report.At)
	}
	return b.Path == ""
}

func (s *state) join(w *loadWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[w] = true
}

func (s *state) leave(w *loadWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}
