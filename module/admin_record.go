package module

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
)

const recordPath = "/cache_aware/record"

// serveRecord streams a recording of a state as JSON lines, until the client
// leaves, the time that it asks for is over, or the state is gone. Nothing is
// recorded while nobody reads, and for one reader at a time.
func serveRecord(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return methodNotAllowed(w, r, http.MethodPost)
	}
	query := r.URL.Query()
	state, err := explainingState(query.Get("state"))
	if err != nil {
		return err
	}
	limit, err := recordingLimit(query.Get("duration"))
	if err != nil {
		return err
	}
	recording, err := newRecording(time.Now())
	if err != nil {
		return err
	}
	if !state.recording.CompareAndSwap(nil, recording) {
		return caddy.APIError{HTTPStatus: http.StatusConflict, Err: fmt.Errorf("state is being recorded already: %.100q", state.name)}
	}
	defer state.recording.CompareAndSwap(recording, nil)
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	return recording.stream(ctx, w)
}

// longestRecording is what no duration means, too.
const longestRecording = 30 * 24 * time.Hour

func recordingLimit(text string) (time.Duration, error) {
	if text == "" {
		return longestRecording, nil
	}
	limit, err := caddy.ParseDuration(text)
	if err != nil || limit <= 0 {
		return 0, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("duration must be positive, like 8h: %.100q", text)}
	}
	return min(limit, longestRecording), nil
}

// stream writes lines as they come. The client hears at once that it has begun.
func (r *recording) stream(ctx context.Context, w http.ResponseWriter) error {
	controller := http.NewResponseController(w)
	// The server's limit for reading a request would end it after ten seconds.
	if err := controller.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("lifting the time limit: %w", err)
	}
	w.Header().Set("Content-Type", "application/jsonl")
	if err := controller.Flush(); err != nil {
		return fmt.Errorf("beginning the recording: %w", err)
	}
	encoder := json.NewEncoder(w)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.gone:
			return nil
		case request := <-r.ended:
			line := r.line(request)
			if line == nil {
				continue
			}
			if encoder.Encode(line) != nil {
				return nil // the client is gone
			}
		}
		if len(r.ended) == 0 && controller.Flush() != nil {
			return nil
		}
	}
}
