// Package health learns what replicas report about themselves: load, cache
// capacity, hit counters, restarts.
//
// A [Poller] asks every replica for its load page now and then, finds out
// which engine answers, and hands each answer on as a [Report]. One small file
// per engine (its dialect) says where that engine reports and in which words.
// How a page is fetched is the caller's business, see [Fetch].
package health
