// Package command registers the cache-aware command of Caddy and its
// subcommands.
package command

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/seed5db0839e/caddy-cache-aware/module"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "cache-aware",
		Usage: "<command>",
		Short: "Tools of the cache_aware selection policy for LLM replicas",
		Long:  "Tools of the cache_aware selection policy, which sends LLM requests to the replica whose KV cache holds their prefix.",
		CobraFunc: func(cmd *cobra.Command) {
			cmd.AddCommand(
				demoCommand(), simulateCommand(), studyCommand(),
				module.StatusCommand(), module.ExplainCommand(), module.RecordCommand(),
			)
		},
	})
}
