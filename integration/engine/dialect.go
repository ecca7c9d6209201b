package engine

// Dialect says what an engine tells of itself: whose pages it has.
type Dialect uint8

// The dialects.
const (
	// VLLMPages tell load, capacity, hit counters and start time.
	VLLMPages Dialect = iota
	// LlamaCppPages tell load, slots, context and hit counters.
	LlamaCppPages
	// OllamaPages tell which model is loaded with how long a context.
	OllamaPages
	// NoPages tell nothing.
	NoPages
)

// String returns the name that package health has for it.
func (d Dialect) String() string {
	return [...]string{"vllm", "llamacpp", "ollama", "none"}[d]
}
