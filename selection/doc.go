// Package selection decides which replica a request goes to.
//
// A Fleet knows, per replica, which prompt prefixes its KV cache still holds
// (Residency), how much work it has been given and has not done (ledger), how
// fast it computes (Speed) and how it has been failing. Place weighs these in
// seconds, picks the replica where the request costs least, to itself and to
// those that come after it, and books it there. The Booking then hears what
// becomes of the request and is closed exactly once.
//
// The package does no I/O and reads no clock: every call takes the time as an
// argument, and ties are drawn from a seeded source, so that the same calls
// give the same choices in production and in virtual time.
package selection
