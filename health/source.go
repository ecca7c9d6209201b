package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// source is what we know of how to ask one replica for its load.
type source struct {
	// dialect is nil while the engine is not known.
	dialect *dialect
	// page is the index of the load page that answers.
	page int
	// facts is what the dialect's facts pages told.
	facts Report
	// fresh counts down polls until facts are read and better load pages are
	// tried again; it is 0 when that is due.
	fresh int
	// drains is set when asking for /metrics costs an engine its statistics.
	drains bool
}

// factsEvery is how many polls what a replica's facts pages told holds.
const factsEvery = 30

// errAbsent means that the replica answers, but not with such a page: another
// may be tried.
var errAbsent = errors.New("no usable page")

// errTrouble means that the replica answers, but not with this page at present.
var errTrouble = errors.New("replica in trouble")

// asker asks one replica for pages.
type asker struct {
	*Poller
	*scratch
	replica string
}

// poll brings the source up to date and returns the replica's report in the
// scratch.
func (a asker) poll(ctx context.Context, src *source) error {
	if src.dialect == nil {
		if err := a.identify(ctx, src); err != nil {
			return err
		}
	}
	if src.fresh == 0 || src.facts.Sleeping {
		if err := a.learnFacts(ctx, src); err != nil {
			return err
		}
	}
	src.fresh--
	if src.facts.Sleeping {
		// The load page might wake the engine up.
		a.report = unknown()
	} else if err := a.load(ctx, src); err != nil {
		return err
	}
	a.report.Engine = src.dialect.engine
	a.report.fill(&src.facts)
	return nil
}

// identify finds out which engine answers: by what it calls itself, else by
// what its pages look like.
func (a asker) identify(ctx context.Context, src *source) error {
	if a.config.Path == "" {
		body, err := a.get(ctx, modelsPage.path)
		if err == nil {
			src.dialect = nameItself(a.dialects, body)
		} else if !errors.Is(err, errAbsent) {
			return err
		}
	}
	for _, path := range a.probes {
		if src.dialect != nil {
			break
		}
		if src.drains && path == metricsPath {
			continue
		}
		body, err := a.get(ctx, path)
		if err == nil {
			src.dialect = recognise(a.dialects, path, body)
			src.drains = src.drains || src.dialect != nil && src.dialect.engine == trtllm.engine
		} else if !errors.Is(err, errAbsent) {
			return err
		}
	}
	if src.dialect == nil {
		return fmt.Errorf("finding the load page: %w of a known engine", errAbsent)
	}
	src.page, src.fresh = 0, 0
	return nil
}

// learnFacts reads the facts pages. One that is absent is no error; one in
// trouble leaves what was known, and the load page will tell whether it is the
// replica that is in trouble. One that is not answered at all ends the poll, so
// that a dead replica is asked once.
func (a asker) learnFacts(ctx context.Context, src *source) error {
	facts := unknown()
	for _, p := range src.dialect.facts {
		body, err := a.get(ctx, p.path)
		switch {
		case err == nil:
			if p.into(&a.report, body) {
				facts.fill(&a.report)
			}
		case errors.Is(err, errTrouble):
			src.facts.Sleeping = false
			facts.fill(&src.facts)
		case !errors.Is(err, errAbsent):
			return err
		}
	}
	src.facts, src.fresh, src.page = facts, factsEvery, 0
	return nil
}

// load reads the first load page that is there, from the one that was there
// last. Without any, the engine of the replica is no longer taken for known.
func (a asker) load(ctx context.Context, src *source) error {
	var err error
	for ; src.page < len(src.dialect.load); src.page++ {
		p := src.dialect.load[src.page]
		var body []byte
		body, err = a.get(ctx, p.path)
		if err == nil {
			if p.into(&a.report, body) {
				return nil
			}
			err = fmt.Errorf("reading %s: %w of engine %s", bare(p.path), errAbsent, src.dialect.engine)
		}
		if !errors.Is(err, errAbsent) {
			return err
		}
	}
	src.page, src.fresh = 0, 0
	if len(a.dialects) > 1 {
		src.dialect = nil
	}
	return err
}

// get fetches one page, within the time and size that the config allows. The
// body is valid until the next get.
func (a asker) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	body, err := a.fetch(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", bare(path), err)
	}
	return body, nil
}

func (a asker) fetch(ctx context.Context, path string) ([]byte, error) {
	resp, err := a.config.Fetch(ctx, a.replica, path, wanted)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the address, whose query may hold a key
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := statusError(resp.StatusCode); err != nil {
		// A short body is read to its end so that the connection can be reused.
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
		return nil, err
	}
	return a.read(resp.Body, resp.Header.Get("Content-Encoding"), a.config.MaxBytes)
}

// statusError tells a page that is not there from an engine in trouble.
func statusError(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusTooManyRequests,
		status >= 500 && status != http.StatusNotImplemented:
		return fmt.Errorf("%w: status %d", errTrouble, status)
	default:
		return fmt.Errorf("%w: status %d", errAbsent, status)
	}
}

// bare returns a path without its query, which may hold a key.
func bare(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
