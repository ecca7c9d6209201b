package selection

import (
	"testing"
	"time"
)

func TestPromisesAreCountedApartFromUncheckedOnes(t *testing.T) {
	f := NewFleet(NewMapStore(), 1)
	one := addresses(1)
	serve := func(request *Request, usage Usage) int {
		b := f.Place(at(0), request, one)
		b.End(at(time.Second), usage)
		b.End(at(time.Second), usage) // counts once
		return b.Estimate.Matched
	}
	serve(chat(1, 8000), Usage{Prompt: 16_000, Cached: 0, Checked: true})
	promised := serve(chat(1, 8000), Usage{Prompt: 16_000, Cached: 12_000, Checked: true})
	again := serve(chat(1, 8000), Usage{})
	f.Place(at(0), chat(1, 8000), one).Fail(at(0), FailureRequest)
	f.Place(at(0), chat(1, 8000), one).Cancel(at(0), Usage{})

	s := f.Status(at(time.Second))[0]
	if s.Booked != 5 || promised == 0 || again == 0 {
		t.Errorf("%d booked, %d and %d tokens promised", s.Booked, promised, again)
	}
	// An answer counts its tokens otherwise than we do: shares are compared.
	if want := (Promises{Requests: 2, Prompt: 16_000, Promised: uint64(promised), Confirmed: 6000}); s.Checked != want {
		t.Errorf("checked: %+v, want %+v", s.Checked, want)
	}
	if want := (Promises{Requests: 1, Prompt: 8000, Promised: uint64(again)}); s.Unchecked != want {
		t.Errorf("unchecked: %+v, want %+v", s.Unchecked, want)
	}
}
