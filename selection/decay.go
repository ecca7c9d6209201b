package selection

import (
	"math"
	"time"
)

// decayed is a sum that fades: it loses half of its value every half-life.
// Divided by the mean life it is a rate per second.
type decayed struct {
	value float64
	at    time.Time
}

// get is the value at now. A clock that goes backwards does not raise it.
func (d *decayed) get(now time.Time, halfLife time.Duration) float64 {
	age := now.Sub(d.at)
	if d.value == 0 || age <= 0 {
		return d.value
	}
	return d.value * math.Exp2(-float64(age)/float64(halfLife))
}

func (d *decayed) set(value float64, now time.Time) {
	d.value = value
	if now.After(d.at) {
		d.at = now
	}
}

// meanLife turns a half-life into the mean life of a decaying unit, in seconds.
func meanLife(halfLife time.Duration) float64 {
	return halfLife.Seconds() / math.Ln2
}
