package module

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

// bookedAttempt tells a booking what becomes of one attempt. The transport
// calls it on the request's goroutine; abandon may come from another one.
type bookedAttempt struct {
	booking *selection.Booking
	stored  reference
	started time.Time
	stop    func() bool // disarms abandon
	outcome *outcome    // of the decision
	prompt  bool        // the request has one that could be read

	measured measuredPrompt
}

// headers hears the status of the answer. An error status ends the attempt
// here: its body is of no interest, and the handler may try again.
func (a *bookedAttempt) headers(status int, _ http.Header, at time.Time) {
	if failure, failed := failureOf(status, a.prompt); failed {
		a.fail(failure, at)
		return
	}
	a.stored.served()
}

func (a *bookedAttempt) identified(id string) { a.stored.issued(id) }

// failureOf says whom an answer's status speaks against. Not found is the
// replica's failure to have a model if the request carries a prompt, else the
// client's wrong path or id.
func failureOf(status int, prompt bool) (selection.Failure, bool) {
	switch {
	case status < 400:
		return 0, false
	case status == http.StatusNotFound && !prompt:
		return selection.FailureRequest, true
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

func (a *bookedAttempt) firstToken(at time.Time) {
	a.outcome.firstToken(at.Sub(a.started))
	a.booking.FirstToken(at)
}

func (a *bookedAttempt) usage(u usage) { a.outcome.usage(u) }

func (a *bookedAttempt) ended(at time.Time) {
	a.stop()
	a.outcome.close(resultAnswered)
	said := a.outcome.reported()
	a.measured.learn(said.Prompt)
	a.booking.End(at, said)
}

// failed hears a transport error, or an answer that broke off. An answer that
// the client or the proxy does not want to its end is nobody's failure. A
// replica that is slow to answer is alive, one that cannot be reached or drops
// the connection may not be.
func (a *bookedAttempt) failed(err error, at time.Time) {
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errResponseClosed):
		a.stop()
		a.cancel(at)
	case errors.As(err, &network) && network.Timeout() && !isDial(err):
		a.fail(selection.FailureModel, at)
	default:
		a.fail(selection.FailureReplica, at)
	}
}

// isDial tells whether the connection could not even be made.
func isDial(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "dial"
}

func (a *bookedAttempt) fail(failure selection.Failure, at time.Time) {
	a.stop()
	a.outcome.close(resultFailed)
	a.booking.Fail(at, failure)
}

// abandon closes the booking when the request is over and nobody else has.
func (a *bookedAttempt) abandon() { a.cancel(time.Now()) }

func (a *bookedAttempt) cancel(at time.Time) {
	a.outcome.close(resultCancelled)
	a.booking.Cancel(at, a.outcome.reported())
}

// logOutcome adds what is known of the answer to the access log.
func (a *bookedAttempt) logOutcome(enc zapcore.ObjectEncoder) {
	o := a.outcome
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ttft > 0 {
		enc.AddFloat64("ttft_ms", milliseconds(o.ttft.Seconds()))
	}
	if o.said.cachedKnown {
		enc.AddInt("confirmed_tokens", o.said.cachedTokens)
	}
}
