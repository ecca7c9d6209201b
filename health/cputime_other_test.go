//go:build !unix

package health

import "time"

// cpuTime is not measured here; the benchmark's figures are then 0.
func cpuTime() time.Duration { return 0 }
