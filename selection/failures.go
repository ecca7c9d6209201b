package selection

import (
	"math"
	"time"

	"github.com/zeebo/xxh3"
)

const (
	// failureHalfLife is how fast a failure is forgotten without further news.
	failureHalfLife = 10 * time.Second
	// failureLimit bounds the count, and with it the price and the time that a
	// recovered replica stays shunned: from the limit to a price of one second
	// takes about 25 s.
	failureLimit = 6
	modelCells   = 64
)

// failures prices a replica that has been failing lately, so that answering
// errors at once does not make it look cheap. Models are told apart, since an
// adapter that one replica has not loaded says nothing about other models.
// Models share cells by hash: memory is fixed whatever names clients send.
type failures struct {
	whole  decayed // connections refused and the like
	models [modelCells]decayed
}

// price is the extra cost of a request for a model, in seconds: 1 s after one fresh failure, 5 s after
// two, 21 s after three, and so on.
func (f *failures) price(model int, now time.Time) float64 {
	return failurePrice(f.whole.get(now, failureHalfLife) + f.models[model].get(now, failureHalfLife))
}

func failurePrice(count float64) float64 {
	if count < 0.01 {
		return 0
	}
	return (math.Pow(4, min(count, failureLimit)) - 1) / 3
}

// fail counts a failed attempt that began at the given time. Attempts that
// were under way when the last one failed have the same cause and count once.
func (f *failures) fail(model int, whole bool, began, now time.Time) {
	cell := &f.models[model]
	if whole {
		cell = &f.whole
	}
	if cell.value > 0 && began.Before(cell.at) {
		return
	}
	cell.set(min(cell.get(now, failureHalfLife)+1, failureLimit), now)
}

// succeed forgets three quarters of what is held against the replica.
func (f *failures) succeed(model int, now time.Time) {
	for _, cell := range []*decayed{&f.whole, &f.models[model]} {
		if cell.value != 0 {
			cell.set(cell.get(now, failureHalfLife)/4, now)
		}
	}
}

// modelCell is the cell of a model name.
func modelCell(model string) int {
	return int(xxh3.HashString(model) % modelCells)
}
