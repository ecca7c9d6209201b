//go:build race

package command

// raceDetector slows code down, but not the simulated replicas, so times measured
// with it mean nothing.
const raceDetector = true
