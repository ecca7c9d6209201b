//go:build unix

package measure

import (
	"syscall"
	"time"
)

// CPU returns the CPU time that this process has used, garbage collection
// included. It is 0 where the system does not tell.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
