package selection

import (
	"testing"
	"time"
)

func TestFailuresRaiseThePriceAndFade(t *testing.T) {
	var f failures
	m := modelCell("m")
	if f.price(m, at(0)) != 0 {
		t.Fatal("a replica without failures has a price")
	}
	f.fail(m, false, at(0), at(0))
	one := f.price(m, at(0))
	f.fail(m, false, at(0), at(0))
	two := f.price(m, at(0))
	if one != 1 || two != 5 {
		t.Errorf("price after one and two failures = %v, %v, want 1, 5", one, two)
	}
	if later := f.price(m, at(2*failureHalfLife)); later >= one {
		t.Errorf("price after two half-lives = %v, want under %v", later, one)
	}
	for range 100 {
		f.fail(m, false, at(0), at(0))
	}
	if recovered := f.price(m, at(40*time.Second)); recovered > 1 {
		t.Errorf("price 40 s after the last of many failures = %v, want at most 1", recovered)
	}
}

func TestFailuresOfOneModelLeaveOthersAlone(t *testing.T) {
	var f failures
	adapter, base := modelCell("adapter"), modelCell("base")
	if adapter == base {
		t.Fatal("the two names share a cell, choose others")
	}
	f.fail(adapter, false, at(0), at(0))
	if price := f.price(base, at(0)); price != 0 {
		t.Errorf("another model's price = %v, want 0", price)
	}
	f.fail(adapter, true, at(0), at(0))
	if price := f.price(base, at(0)); price != 1 {
		t.Errorf("another model's price after the replica was lost = %v, want 1", price)
	}
	f.succeed(base, at(0))
	if price := f.price(base, at(0)); price >= 0.2 {
		t.Errorf("price after a success = %v, want under 0.2", price)
	}
}

func TestFailuresOfOneCauseCountOnce(t *testing.T) {
	var f failures
	for range 10 {
		f.fail(0, true, at(0), at(time.Second))
	}
	if price := f.price(0, at(time.Second)); price != 1 {
		t.Errorf("price after a crash under ten requests = %v, want 1", price)
	}
}
