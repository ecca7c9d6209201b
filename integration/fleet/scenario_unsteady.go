package fleet

import (
	"math"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/workload"
)

// unsteadyScenarios are those in which the load changes.
func unsteadyScenarios() []Scenario {
	return []Scenario{
		// Agents that hand out work to two to six others, of which all begin at
		// once with the parent's conversation.
		{Name: "sub-agents", Profile: engine.H100x8B, Saturation: 90 / 8.0, make: subagentsOf(workload.Subagents{
			Agents: workload.Agents{
				Kinds: 8, ToolCount: 20, ToolTokens: 300, SystemTokens: 3000, MinTurns: 6, MaxTurns: 30,
				AddedTokens: 1000, AnswerTokens: 250, Think: 5 * time.Second,
			},
			Share: 0.15, MinCount: 2, MaxCount: 6, MinSteps: 2, MaxSteps: 8,
		})},
		// Ten seconds of every minute bring four times as much as the others.
		{Name: "bursts", Profile: engine.H100x8B, Saturation: 77 / 8.0, make: paced(workload.Prompts{
			Prefixes: 80, PrefixTokens: 5000, Skew: 0.9, OwnTokens: 600, AnswerTokens: 200,
		}, func(time.Duration) workload.Pace { return workload.Bursts(time.Minute, 10*time.Second, 4) })},
		// A day in the time of the run, with saturation as of its busiest hour.
		{Name: "diurnal", Profile: engine.H100x8B, Saturation: 68 / 8.0, make: paced(workload.Prompts{
			Prefixes: 120, PrefixTokens: 3500, Skew: 0.7, OwnTokens: 900, AnswerTokens: 300,
		}, func(run time.Duration) workload.Pace { return workload.Diurnal(run, 0.15) })},
		// From a quiet state to beyond what the other workloads call high load, and
		// back: 0.92 of saturation at high load.
		{Name: "jump", Profile: engine.H100x8B, Saturation: 54 / 8.0, make: jump(workload.Prompts{
			Prefixes: 150, PrefixTokens: 4500, OwnTokens: 800, AnswerTokens: 250,
		})},
		// Forty customers, from 20 % of the traffic down to 1 %.
		{Name: "tenants", Profile: engine.H100x8B, Saturation: 64 / 8.0, make: tenants(workload.Tenants{
			Tenants: 40, Skew: 0.9, Prompts: 4,
			PromptTokens: [2]int{300, 10_000}, OwnTokens: [2]int{60, 5000}, AnswerTokens: [2]int{40, 700},
			MaxTurns: 10, Think: 15 * time.Second, Active: 0.4, Period: 2 * time.Minute,
		})},
	}
}

func paced(template workload.Prompts, pace func(run time.Duration) workload.Pace) func(plan) (*workload.Workload, error) {
	return func(p plan) (*workload.Workload, error) {
		template := template
		template.Pace = pace(p.duration)
		return prompts(template)(p)
	}
}

func jump(template workload.Prompts) func(plan) (*workload.Workload, error) {
	quietUntil := func(run time.Duration) workload.Pace { return workload.Jump(run*4/10, run*9/10, 0.3) }
	return func(p plan) (*workload.Workload, error) {
		p.rate *= 1.15
		return paced(template, quietUntil)(p)
	}
}

func subagentsOf(template workload.Subagents) func(plan) (*workload.Workload, error) {
	return func(p plan) (*workload.Workload, error) {
		template := template
		template.Agents = populated(template.Agents, p)
		return template.Workload(p.seed), nil
	}
}

func tenants(template workload.Tenants) func(plan) (*workload.Workload, error) {
	return func(p plan) (*workload.Workload, error) {
		template := template
		template.Rate, template.Duration = p.rate, p.duration
		return template.Workload(p.seed), nil
	}
}

// populated gives agents as many users as a plan asks for, and enough sessions.
func populated(a workload.Agents, p plan) workload.Agents {
	a.Users = max(1, int(math.Round(p.rate)))
	a.Ramp = min(warmup, p.duration/4)
	turns := (a.MinTurns + a.MaxTurns) / 2
	each := int(p.duration/(time.Duration(turns)*a.Think)) + 3
	a.Sessions = a.Users * each
	return a
}
