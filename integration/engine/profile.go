package engine

import (
	"math"
	"slices"
	"time"
)

// Profile describes one kind of replica: a model on its hardware, as an engine
// would run it. A step takes
//
//	max(StepFloor, StepBase + PerPrefillToken*tokens + PerAttention*tokens*context)
//	  + PerSequence*decoding + PerKVToken*kv
//
// where tokens are the prompt tokens of the step, context is what each of them
// attends to, decoding counts the sequences that decode and kv their tokens.
type Profile struct {
	Name string

	// BlockSize is the number of tokens in a KV block, Blocks the number of
	// blocks: their product is the capacity in tokens.
	BlockSize, Blocks int
	// TokenBudget is the largest number of tokens in a step.
	TokenBudget int
	// MaxSequences is the largest number of running sequences.
	MaxSequences int
	// Slots makes every running sequence own one of MaxSequences slots, each
	// with an equal share of the capacity and the memory of the one sequence it
	// served last, as llama.cpp does. Otherwise blocks are shared as in vLLM.
	Slots bool
	// Dialect is how the engine tells of itself.
	Dialect Dialect

	// StepFloor is the time to read the weights once, StepBase the fixed
	// overhead of a step that is bound by arithmetic.
	StepFloor, StepBase time.Duration
	// PerPrefillToken is the arithmetic of one prompt token.
	PerPrefillToken time.Duration
	// PerAttention is the time, in nanoseconds, in which one prompt token
	// attends to one token of its context.
	PerAttention float64
	// PerSequence is the overhead of a decoding sequence, PerKVToken the time
	// to read one token of its KV.
	PerSequence, PerKVToken time.Duration
}

// The profiles are estimates from model and hardware sheets: PerPrefillToken is
// two operations per weight at about two thirds of the peak, PerAttention four
// operations per layer and hidden dimension (two for the scores, two for the sum
// of values) at half of the peak, StepFloor the weights over the memory bandwidth
// plus launch overhead, PerKVToken the bytes of a token's KV over the bandwidth,
// Blocks what is left of the memory. Half of the peak is what published times of
// long prompts come to: 30 minutes for a million tokens of an 8B model on one
// A100 (MInference, arXiv:2407.02490) are 3.6 ns a pair, or 47 % of its peak.
var (
	// H100x8B is an 8B model (bf16) on one H100 with 80 GB.
	H100x8B = Profile{
		Name: "8b-h100", BlockSize: 16, Blocks: 25_000, TokenBudget: 8192, MaxSequences: 256,
		StepFloor: 6 * time.Millisecond, StepBase: 4 * time.Millisecond,
		PerPrefillToken: 25 * time.Microsecond, PerAttention: 1.1,
		PerSequence: 30 * time.Microsecond, PerKVToken: 50 * time.Nanosecond,
	}
	// H100x8BSmall is the same with a quarter of the cache, as where other models
	// share the card.
	H100x8BSmall = smallCache(H100x8B, "8b-h100-small")
	// H100x32B is a 32B model (bf16) on two H100.
	H100x32B = Profile{
		Name: "32b-2xh100", BlockSize: 16, Blocks: 17_500, TokenBudget: 8192, MaxSequences: 256,
		StepFloor: 12 * time.Millisecond, StepBase: 6 * time.Millisecond,
		PerPrefillToken: 60 * time.Microsecond, PerAttention: 1.3,
		PerSequence: 40 * time.Microsecond, PerKVToken: 50 * time.Nanosecond,
	}
	// H100x70B is a 70B model (bf16) on four H100.
	H100x70B = Profile{
		Name: "70b-4xh100", BlockSize: 16, Blocks: 25_600, TokenBudget: 8192, MaxSequences: 256,
		StepFloor: 14 * time.Millisecond, StepBase: 8 * time.Millisecond,
		PerPrefillToken: 70 * time.Microsecond, PerAttention: 1.3,
		PerSequence: 40 * time.Microsecond, PerKVToken: 32 * time.Nanosecond,
	}
	// T4x8B is an 8B model (int4) on an old card with 16 GB, 65 Tflop/s and
	// 320 GB/s.
	T4x8B = Profile{
		Name: "8b-t4", BlockSize: 16, Blocks: 3_000, TokenBudget: 2048, MaxSequences: 64,
		StepFloor: 25 * time.Millisecond, StepBase: 10 * time.Millisecond,
		PerPrefillToken: 500 * time.Microsecond, PerAttention: 16,
		PerSequence: 100 * time.Microsecond, PerKVToken: 500 * time.Nanosecond,
	}
	// LlamaCpp is an 8B model (4 bit) under llama.cpp on a desktop card with
	// 24 GB, four slots of 16k tokens.
	LlamaCpp = Profile{
		Name: "llamacpp-4slots", BlockSize: 16, Blocks: 4096, TokenBudget: 2048, MaxSequences: 4, Slots: true,
		Dialect:   LlamaCppPages,
		StepFloor: 8 * time.Millisecond, StepBase: 6 * time.Millisecond,
		PerPrefillToken: 250 * time.Microsecond, PerAttention: 8,
		PerSequence: 500 * time.Microsecond, PerKVToken: 160 * time.Nanosecond,
	}
	// Ollama is the same model and card under Ollama, which answers one request at
	// a time unless told otherwise.
	Ollama = Profile{
		Name: "ollama-1slot", BlockSize: 16, Blocks: 1024, TokenBudget: 2048, MaxSequences: 1, Slots: true,
		Dialect:   OllamaPages,
		StepFloor: 8 * time.Millisecond, StepBase: 6 * time.Millisecond,
		PerPrefillToken: 250 * time.Microsecond, PerAttention: 8,
		PerSequence: 500 * time.Microsecond, PerKVToken: 160 * time.Nanosecond,
	}
)

// Profiles lists the named profiles.
func Profiles() []Profile {
	return []Profile{H100x8B, H100x8BSmall, H100x32B, H100x70B, T4x8B, LlamaCpp, Ollama}
}

// smallCache is a profile with a quarter of the KV cache.
func smallCache(p Profile, name string) Profile {
	p.Name, p.Blocks = name, p.Blocks/4
	return p
}

// ProfileNamed finds a profile by its name.
func ProfileNamed(name string) (Profile, bool) {
	all := Profiles()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return all[i], true
}

// Capacity is the KV cache's size in tokens.
func (p Profile) Capacity() int { return p.Blocks * p.BlockSize }

// MaxTokens is the largest number of tokens one sequence may have.
func (p Profile) MaxTokens() int {
	if p.Slots {
		return p.Blocks / p.MaxSequences * p.BlockSize
	}
	return p.Capacity()
}

// Slowed is the profile with all its times multiplied by factor: 3 makes it
// three times slower, 0.5 twice as fast.
func (p Profile) Slowed(factor float64) Profile {
	scale := func(d *time.Duration) { *d = time.Duration(math.Round(float64(*d) * factor)) }
	for _, d := range []*time.Duration{
		&p.StepFloor, &p.StepBase, &p.PerPrefillToken, &p.PerSequence, &p.PerKVToken,
	} {
		scale(d)
	}
	p.PerAttention *= factor
	return p
}

// load is the work of one step.
type load struct {
	prefill   int     // prompt tokens computed
	attention float64 // sum over them of the tokens they attend to
	decoding  int     // sequences that decode
	kv        int     // tokens of those sequences
}

// stepTime is how long a step with that load takes. Without prefill it is a sum
// of whole nanoseconds, which makes the closed form of decodeTime exact.
func (p *Profile) stepTime(l load) time.Duration {
	fixed := p.StepFloor
	if l.prefill > 0 {
		compute := p.StepBase + time.Duration(l.prefill)*p.PerPrefillToken +
			time.Duration(p.PerAttention*l.attention)
		fixed = max(fixed, compute)
	}
	return fixed + time.Duration(l.decoding)*p.PerSequence + time.Duration(l.kv)*p.PerKVToken
}

// decodeTime is how long the next steps decode steps take for n sequences with
// kv tokens in the first of them: every step adds n tokens.
func (p *Profile) decodeTime(steps, n, kv int) time.Duration {
	first := p.stepTime(load{decoding: n, kv: kv})
	growth := time.Duration(n) * p.PerKVToken
	k := time.Duration(steps)
	return k*first + growth*(k*(k-1)/2)
}

// decodeSteps is the largest number of decode steps that fit into d, the inverse
// of decodeTime.
func (p *Profile) decodeSteps(d time.Duration, n, kv int) int {
	first := float64(p.stepTime(load{decoding: n, kv: kv}))
	half := float64(time.Duration(n)*p.PerKVToken) / 2
	k := int(float64(d) / first)
	if half > 0 {
		b := first - half
		k = int((math.Sqrt(b*b+4*half*float64(d)) - b) / (2 * half))
	}
	for k > 0 && p.decodeTime(k, n, kv) > d {
		k--
	}
	for p.decodeTime(k+1, n, kv) <= d {
		k++
	}
	return k
}
