package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/fleet"
)

// results is a file of a study's runs: a line that says what they have in common,
// then one for each, in JSON. Files of the same study can be put together.
type results struct {
	file  *os.File
	known []fleet.Row
}

// common is what must be the same for all runs of a file.
type common struct {
	Replicas int     `json:"replicas"`
	Duration float64 `json:"duration_s"`
}

// openResults opens a file of runs, or makes it. What a run that was interrupted
// left of a last line is cut off.
func openResults(path string, replicas int, duration time.Duration) (*results, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // figures are no secret
	if err != nil {
		return nil, fmt.Errorf("opening results: %w", err)
	}
	r := &results{file: file}
	if err := r.read(common{replicas, duration.Seconds()}); err != nil {
		file.Close()
		return nil, fmt.Errorf("reading results in %s: %w", path, err)
	}
	return r, nil
}

func (r *results) read(want common) error {
	text, err := io.ReadAll(r.file)
	if err != nil {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	if len(whole) > 0 {
		err = r.decode(json.NewDecoder(bytes.NewReader(whole)), want)
	} else if head, _ := json.Marshal(want); !bytes.HasPrefix(head, text) {
		err = errors.New("they are no results of a study")
	}
	if err != nil {
		return err // and the file is left as it is
	}
	if err := errors.Join(r.file.Truncate(int64(len(whole))), seek(r.file, len(whole))); err != nil {
		return err
	}
	if len(whole) == 0 {
		return r.line(want)
	}
	return nil
}

// decode reads lines of runs. What they have in common is told at the beginning,
// and again where another file was appended.
func (r *results) decode(lines *json.Decoder, want common) error {
	for begun := false; lines.More(); begun = true {
		var line struct {
			common
			fleet.Row
		}
		if err := lines.Decode(&line); err != nil {
			return err
		}
		switch {
		case line.common == want:
		case !begun || line.common != common{}:
			return fmt.Errorf("they are of %d replicas over %g s, not of %d over %g s",
				line.Replicas, line.Duration, want.Replicas, want.Duration)
		default:
			r.known = append(r.known, line.Row)
		}
	}
	return nil
}

func seek(file *os.File, to int) error {
	_, err := file.Seek(int64(to), io.SeekStart)
	return err
}

// add appends a run.
func (r *results) add(row fleet.Row) error { return r.line(row) }

func (r *results) line(value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		_, err = r.file.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}
