package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Trace reads any of the trace formats, which it tells apart by the first line.
type Trace struct {
	Name string
	// Users is how many sessions of a trace of sessions run side by side, and
	// Ramp the time over which they begin. Traces of requests have their own times.
	Users int
	Ramp  time.Duration
	Seed  uint64
}

// Read makes a workload of a trace: a recording or one in Mooncake's format as an
// open one, coding sessions as a closed loop.
func (t Trace) Read(from io.Reader) (*Workload, error) {
	buffered := bufio.NewReaderSize(from, 64<<10)
	fields, err := firstFields(buffered)
	if err != nil {
		return nil, fmt.Errorf("reading trace: %w", err)
	}
	var w *Workload
	switch {
	case fields["block_lengths"]:
		w, err = Recording{Name: t.Name}.Read(buffered)
	case fields["hash_ids"]:
		w, err = Mooncake{Name: t.Name, Bucket: Guess}.Read(buffered)
	case fields["requests"]:
		w, err = Coding{
			Name: t.Name, Users: t.Users, Sessions: 8 * t.Users, MaxThink: 2 * time.Minute, Ramp: t.Ramp,
		}.Read(buffered, t.Seed)
	default:
		return nil, errors.New("reading trace: the first line has neither hash_ids nor requests")
	}
	if err == nil && len(w.Sessions) == 0 {
		err = errors.New("reading trace: it is empty")
	}
	return w, err
}

// firstFields are the names of the fields of the first line's object. Of a line
// longer than the buffer they are those that are seen.
func firstFields(from *bufio.Reader) (map[string]bool, error) {
	head, err := from.Peek(from.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(head))
	fields := map[string]bool{}
	token, err := decoder.Token()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty")
	}
	if err != nil || token != json.Delim('{') {
		return nil, errors.New("line 1 is no JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			break
		}
		fields[name.(string)] = true
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			break // the value goes on after the buffer
		}
	}
	return fields, nil
}

// eachLine hands over the lines that are not empty, and adds their number to errors.
func eachLine(from io.Reader, take func(line []byte) error) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 256<<20)
	for n := 1; scanner.Scan(); n++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		if err := take(scanner.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return scanner.Err()
}
