package module

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// attemptObserver tells a booking what becomes of one attempt. The transport
// calls it on the request's goroutine; abandon may come from another one.
type attemptObserver struct {
	booking *selection.Booking
	started time.Time
	stop    func() bool // disarms abandon

	mu    sync.Mutex
	ttft  time.Duration // until the first token; 0 while unknown
	usage usage
}

// headers hears the status of the answer. An error status ends the attempt
// here: its body is of no interest, and the handler may try again.
func (a *attemptObserver) headers(status int, _ http.Header, at time.Time) {
	if failure, failed := failureOf(status); failed {
		a.fail(failure, at)
	}
}

// failureOf says whom an answer's status speaks against.
func failureOf(status int) (selection.Failure, bool) {
	switch {
	case status < 400:
		return 0, false
	case status >= 500,
		status == http.StatusUnauthorized,
		status == http.StatusForbidden,
		status == http.StatusNotFound,
		status == http.StatusRequestTimeout,
		status == http.StatusTooManyRequests:
		return selection.FailureModel, true
	default:
		return selection.FailureRequest, true
	}
}

func (a *attemptObserver) firstToken(at time.Time) {
	a.mu.Lock()
	a.ttft = at.Sub(a.started)
	a.mu.Unlock()
	a.booking.FirstToken(at)
}

func (a *attemptObserver) learnUsage(u usage) {
	a.mu.Lock()
	a.usage = u
	a.mu.Unlock()
}

func (a *attemptObserver) ended(at time.Time) {
	a.stop()
	a.booking.End(at, a.reported())
}

// failed hears a transport error, or an answer that broke off. A client that
// leaves is nobody's failure.
func (a *attemptObserver) failed(err error, at time.Time) {
	if errors.Is(err, context.Canceled) {
		a.stop()
		a.booking.Cancel(at, a.reported())
		return
	}
	a.fail(selection.FailureReplica, at)
}

func (a *attemptObserver) fail(failure selection.Failure, at time.Time) {
	a.stop()
	a.booking.Fail(at, failure)
}

// abandon closes the booking when the request is over and nobody else has.
func (a *attemptObserver) abandon() {
	a.booking.Cancel(time.Now(), a.reported())
}

// reported is what the answer has said of itself so far.
func (a *attemptObserver) reported() selection.Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return selection.Usage{Output: a.usage.outputTokens}
}

// logOutcome adds what is known of the answer to the access log.
func (a *attemptObserver) logOutcome(enc zapcore.ObjectEncoder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ttft > 0 {
		enc.AddFloat64("ttft_ms", milliseconds(a.ttft.Seconds()))
	}
	if a.usage.cachedKnown {
		enc.AddInt("confirmed_tokens", a.usage.cachedTokens)
	}
}
