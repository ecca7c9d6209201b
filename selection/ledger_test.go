package selection

import (
	"testing"
	"time"
)

var start = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

func queued(prefill time.Duration, streamed bool) *Booking {
	return &Booking{prefill: prefill, prompt: 100, streamed: streamed}
}

func assertWait(t *testing.T, l *ledger, now time.Time, want time.Duration) {
	t.Helper()
	first, others := l.wait(now)
	got := seconds(first + others)
	if diff := got - want; diff < -time.Microsecond || diff > time.Microsecond {
		t.Errorf("wait at %v = %v, want %v", now.Sub(start), got, want)
	}
}

func assertEmpty(t *testing.T, l *ledger) {
	t.Helper()
	if l.first != nil || l.last != nil || l.prefill != 0 || l.queued != 0 || l.running != 0 || l.context != 0 || l.decoding != 0 || l.unindexed != 0 || l.answers != 0 {
		t.Errorf("ledger is not empty: %+v", *l)
	}
}

func TestLedgerWorksOffTheOldestPrefill(t *testing.T) {
	var l ledger
	first, second := queued(100*time.Millisecond, true), queued(50*time.Millisecond, true)
	l.add(first, at(0))
	l.add(second, at(0))
	assertWait(t, &l, at(0), 150*time.Millisecond)
	assertWait(t, &l, at(40*time.Millisecond), 110*time.Millisecond)

	l.prefilled(first, at(90*time.Millisecond))
	assertWait(t, &l, at(90*time.Millisecond), 50*time.Millisecond)
	assertWait(t, &l, at(120*time.Millisecond), 20*time.Millisecond)

	l.remove(second, at(130*time.Millisecond))
	assertWait(t, &l, at(130*time.Millisecond), 0)
	l.remove(first, at(time.Second))
	assertEmpty(t, &l)
}

func TestLedgerOverdueReplicaLooksBusy(t *testing.T) {
	var l ledger
	l.add(queued(100*time.Millisecond, true), at(0))
	assertWait(t, &l, at(100*time.Millisecond), 0)
	assertWait(t, &l, at(3100*time.Millisecond), 3*time.Second)
}

func TestLedgerReleasesUnstreamedPrefillsByTime(t *testing.T) {
	var l ledger
	silent := []*Booking{queued(100*time.Millisecond, false), queued(100*time.Millisecond, false)}
	for _, b := range silent {
		l.add(b, at(0))
	}
	assertWait(t, &l, at(150*time.Millisecond), 50*time.Millisecond)
	if l.queued != 1 || l.running != 1 {
		t.Errorf("queued %d, running %d, want 1 and 1", l.queued, l.running)
	}
	assertWait(t, &l, at(time.Second), 0)
	for _, b := range silent {
		l.remove(b, at(time.Second))
	}
	assertEmpty(t, &l)
}

func TestLedgerOvertakingSpendsOnlyItsOwnEstimate(t *testing.T) {
	var l ledger
	long, short := queued(time.Second, true), queued(100*time.Millisecond, true)
	l.add(long, at(0))
	l.add(short, at(0))
	l.prefilled(short, at(300*time.Millisecond))
	// 300 ms have passed, 100 of them for the short one: 800 are left of the long one.
	assertWait(t, &l, at(300*time.Millisecond), 800*time.Millisecond)
	l.remove(long, at(time.Second))
	l.remove(short, at(time.Second))
	assertEmpty(t, &l)
}

func TestLedgerRemoveIsIdempotent(t *testing.T) {
	var l ledger
	b := queued(time.Second, true)
	l.add(b, at(0))
	l.remove(b, at(1))
	l.remove(b, at(2))
	l.prefilled(b, at(3))
	assertEmpty(t, &l)
}
