package engine

// Dialect says what an engine tells of itself: whose pages and answers it has.
type Dialect uint8

// The dialects.
const (
	// VLLMPages tell load, capacity, hit counters and start time, answers what
	// was cached.
	VLLMPages Dialect = iota
	// LlamaCppPages tell load, slots, context and hit counters, answers what was
	// cached and how long the rest took.
	LlamaCppPages
	// OllamaPages tell which model is loaded with how long a context, answers how
	// long the prompt took.
	OllamaPages
	// NoPages tell nothing, answers the length of the prompt.
	NoPages
)

// String returns the name that package health has for it.
func (d Dialect) String() string {
	return [...]string{"vllm", "llamacpp", "ollama", "none"}[d]
}
