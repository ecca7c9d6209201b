package module

// usage is what an answer says about its cost. Zero means that it does not
// say, but for cachedTokens.
type usage struct {
	promptTokens int  // of the whole prompt, cached ones included
	cachedTokens int  // of the prompt, found in the replica's KV cache
	cachedKnown  bool // cachedTokens was reported, even if as zero

	outputTokens  int  // generated, reasoning included
	outputCounted bool // outputTokens is the number of events with content

	prefillSeconds float64 // computing the uncached part of the prompt
	decodeSeconds  float64 // generating the output
	queueSeconds   float64 // waiting inside the engine
	loadSeconds    float64 // loading the model first

	responseID string // the answer's id, by which it may be asked for again
}

// known tells whether the answer has said anything.
func (u usage) known() bool { return u != usage{} }

// usageCount names a number that some engine reports in its answers.
type usageCount uint8

const (
	countNone usageCount = iota

	countPromptTokens     // OpenAI, SGLang
	countCompletionTokens // OpenAI, SGLang
	countCachedTokens     // OpenAI, SGLang

	countInputTokens   // Anthropic (cached ones excluded), OpenAI responses (included)
	countOutputTokens  // Anthropic, OpenAI responses
	countCacheRead     // Anthropic
	countCacheCreation // Anthropic

	countTimedCached     // llama.cpp timings.cache_n
	countTimedPrompt     // llama.cpp timings.prompt_n, cached ones excluded
	countTimedPromptMS   // llama.cpp timings.prompt_ms
	countTimedOutput     // llama.cpp timings.predicted_n
	countTimedOutputMS   // llama.cpp timings.predicted_ms
	countEvaluatedTokens // llama.cpp tokens_evaluated, cached ones included
	countPredictedTokens // llama.cpp tokens_predicted

	countPromptEvalCount // Ollama
	countPromptEvalNS    // Ollama
	countEvalCount       // Ollama
	countEvalNS          // Ollama
	countLoadNS          // Ollama

	countGeneratedTokens // TGI
	countInputLength     // TGI
	countQueueMS         // TGI, a header

	countKinds
)

// maxUsageCount is the largest number believed; others are left out.
const maxUsageCount = 1 << 48

// usageCounts holds the numbers that an answer has reported so far.
type usageCounts struct {
	values [countKinds]float64
	known  uint32 // bit set of usageCount
}

func (c *usageCounts) set(n usageCount, v float64) {
	if v >= 0 && v <= maxUsageCount {
		c.values[n] = v
		c.known |= 1 << n
	}
}

func (c *usageCounts) has(n usageCount) bool { return c.known&(1<<n) != 0 }

// first returns the sum of the first group of which the leading number is
// known, and whether there is one.
func (c *usageCounts) first(groups ...[]usageCount) (sum float64, ok bool) {
	for _, group := range groups {
		if !c.has(group[0]) {
			continue
		}
		for _, n := range group {
			sum += c.values[n]
		}
		return sum, true
	}
	return 0, false
}

var (
	promptCounts = [][]usageCount{
		{countPromptTokens}, {countInputTokens, countCacheRead, countCacheCreation}, {countTimedPrompt, countTimedCached},
		{countEvaluatedTokens}, {countPromptEvalCount}, {countInputLength},
	}
	cachedCounts = [][]usageCount{{countCachedTokens}, {countCacheRead}, {countTimedCached}}
	outputCounts = [][]usageCount{
		{countCompletionTokens}, {countOutputTokens}, {countTimedOutput}, {countPredictedTokens}, {countEvalCount}, {countGeneratedTokens},
	}
)

// usage puts the reported numbers together. events is the number of streamed
// events with content, which stands in for a missing output length.
func (c *usageCounts) usage(events int) usage {
	var u usage
	prompt, _ := c.first(promptCounts...)
	cached, known := c.first(cachedCounts...)
	output, reported := c.first(outputCounts...)
	u.promptTokens, u.outputTokens = int(prompt), int(output)
	u.cachedTokens, u.cachedKnown = int(cached), known
	if !reported {
		u.outputTokens, u.outputCounted = events, events > 0
	}
	u.prefillSeconds = c.values[countTimedPromptMS]/1e3 + c.values[countPromptEvalNS]/1e9
	u.decodeSeconds = c.values[countTimedOutputMS]/1e3 + c.values[countEvalNS]/1e9
	u.queueSeconds = c.values[countQueueMS] / 1e3
	u.loadSeconds = c.values[countLoadNS] / 1e9
	return u
}
