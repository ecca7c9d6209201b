// Package fleet runs replicas behind a router in virtual time and measures what
// clients see: the same requests, at the same times, under different routing
// rules. Replicas are modelled by package engine, traffic by package workload.
//
// A rule sees what a router in front of real engines can see: the prompt's text
// in blocks that align with no block of tokens, its own placements and clock,
// first tokens and ends of answers, and what replicas tell of themselves, which
// is as stale as in reality and can be more or less ([Knowledge]).
package fleet
