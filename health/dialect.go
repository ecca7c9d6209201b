package health

import (
	"bytes"
	"slices"
)

// A page is a path and the way to read what is found there.
type page struct {
	path string
	// read adds what a body tells to r, which was unknown before. It returns
	// false if the body is not a page of this engine; r is then of no use.
	read func(body []byte, r *Report) bool
}

// into reads a body into r and returns false if it is no such page.
func (p page) into(r *Report, body []byte) bool {
	*r = unknown()
	if !p.read(body, r) {
		return false
	}
	r.refuse()
	return true
}

// A dialect is how one engine reports.
type dialect struct {
	engine string
	// owner is what the engine calls itself in its list of models.
	owner string
	// load lists the pages that tell the load, best first. They are of one
	// engine in different configurations and versions: the first that is there
	// is asked from then on.
	load []page
	// facts lists pages that tell what hardly ever changes. They are read when
	// a replica is found, when it restarted, and now and then.
	facts []page
}

// dialects are in the order in which their pages are tried on an unknown
// engine. TensorRT-LLM is first: its own page has to be found before another's
// /metrics is asked for, see trtllm.go.
var dialects = []*dialect{&trtllm, &vllm, &sglang, &llamacpp, &tgi, &lmdeploy, &ollama}

// The values of [Config.Engine] that are no engine's name.
const (
	engineAuto = "auto"
	engineNone = "none"
)

// Engines lists the values that [Config.Engine] may have.
func Engines() []string {
	names := []string{engineAuto}
	for _, d := range []*dialect{&vllm, &sglang, &llamacpp, &trtllm, &tgi, &lmdeploy, &ollama} {
		names = append(names, d.engine)
	}
	return append(names, engineNone)
}

// at returns a dialect whose load is reported at another path, in the form of
// any of its load pages.
func (d *dialect) at(path string) *dialect {
	moved := *d
	moved.load = []page{{path, func(body []byte, r *Report) bool {
		return slices.ContainsFunc(d.load, func(p page) bool { return p.into(r, body) })
	}}}
	return &moved
}

// recognise returns the dialect that a body from the given path is written in,
// nil if it is none of them.
func recognise(among []*dialect, path string, body []byte) *dialect {
	for _, d := range among {
		for _, p := range d.load {
			if p.path == path && p.into(new(Report), body) {
				return d
			}
		}
	}
	// An array at this path is TensorRT-LLM's JSON page.
	if path == metricsPath && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return find(among, trtllm.engine)
	}
	return nil
}

func find(among []*dialect, engine string) *dialect {
	for _, d := range among {
		if d.engine == engine {
			return d
		}
	}
	return nil
}

// probes returns the paths to try on an unknown engine.
func probes(among []*dialect) []string {
	var paths []string
	for _, d := range among {
		for _, p := range d.load {
			if !slices.Contains(paths, p.path) {
				paths = append(paths, p.path)
			}
		}
	}
	return paths
}
