package fleet

import (
	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// mixedScenarios run on replicas that differ, eight of them in all or a
// multiple. No prompt is too long for the smallest.
func mixedScenarios() []Scenario {
	large, old, slots, single := engine.H100x8B, engine.T4x8B, engine.LlamaCpp, engine.Ollama
	slow, fast := large.Slowed(3), large.Slowed(0.5)
	slow.Name, fast.Name = "8b-h100-slow", "8b-h100-fast"
	return []Scenario{
		// One replica is three times slower than the others, one twice as fast.
		{Name: "uneven-speeds", Profile: large, Fleet: []engine.Profile{large, slow, large, large, large, fast, large, large},
			Saturation: 41 / 8.0, make: prompts(workload.Prompts{
				Prefixes: 150, PrefixTokens: 6000, OwnTokens: 1200, AnswerTokens: 300,
			})},
		// One model on whatever there was: large cards, old ones and desktops.
		{Name: "mixed-hardware", Profile: large, Fleet: []engine.Profile{large, old, large, slots, large, old, large, slots},
			Saturation: 58 / 8.0, make: prompts(workload.Prompts{
				Prefixes: 100, PrefixTokens: 3000, Skew: 0.8, OwnTokens: 500, AnswerTokens: 200,
			})},
		// Two boxes that answer four requests and one at a time beside large ones.
		{Name: "few-slots", Profile: large, Fleet: []engine.Profile{large, single, large, large, slots, large, large, large},
			Saturation: 82 / 8.0, make: prompts(workload.Prompts{
				Prefixes: 100, PrefixTokens: 3000, Skew: 0.8, OwnTokens: 500, AnswerTokens: 200,
			})},
	}
}
