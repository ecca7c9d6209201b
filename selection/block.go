package selection

// Block is one link of a prompt's key chain.
type Block struct {
	// Key names everything from the prompt's start up to and including this block.
	Key uint64
	// Tokens counts from the prompt's start up to and including this block.
	Tokens uint32
	// Reply says that the block lies inside an assistant message.
	Reply bool
}

// Slot numbers a replica within a Residency. A slot is used again after Leave.
type Slot uint16

// Match is how many of a prompt's leading tokens one replica holds. Each field
// includes the one before: Sure <= Pending <= Maybe <= Ghost.
type Match struct {
	// Sure counts tokens that were seen computed and lie well within the
	// replica's capacity, or belong to running requests.
	Sure uint32
	// Pending adds tokens of bookings without a first token yet: the replica
	// has them by the time it gets to the next request, unless they fail.
	Pending uint32
	// Maybe adds tokens so close to the replica's capacity that they may
	// have been evicted.
	Maybe uint32
	// Ghost adds tokens that the replica is remembered to have evicted.
	Ghost uint32
}
