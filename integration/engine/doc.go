// Package engine simulates an LLM inference engine: its KV cache, its
// scheduler and the time its steps take.
//
// [Engine] is a state machine without a clock, goroutines or I/O: the caller
// says what time it is. It runs in virtual time for the fleet simulator, and in
// real time behind HTTP as [Server], which speaks enough of the OpenAI API and of
// vLLM's metrics page to stand in for a replica in tests and in the demo.
//
// The scheduler follows vLLM v1: running sequences first, then waiting ones
// first come, first served, prompts in chunks under a token budget, and
// preemption by recomputation of the sequence admitted last when blocks run out.
package engine
