package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed5db0839e/caddy-cache-aware/internal/refuse"
	"github.com/seed5db0839e/caddy-cache-aware/module"
)

// run runs a command and returns what it prints.
func run(ctx context.Context, cmd *cobra.Command, in string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestCommandsAskTheRunningCaddy(t *testing.T) {
	r := newAdminRig(t, 2, "")
	c := chat{System: text(1, 4000), User: "one", MaxTokens: 8}
	first := r.send(t.Context(), c)
	config := filepath.Join(t.TempDir(), "Caddyfile")
	file := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(config, []byte("{\nadmin "+r.admin+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, c.body(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		cmd  *cobra.Command
		in   string
		args []string
		want string
	}{
		{module.StatusCommand(), "", []string{"--address", r.admin}, first.Replica},
		{module.StatusCommand(), "", []string{"--config", config, "--adapter", "caddyfile"}, first.Replica},
		{module.ExplainCommand(), "", []string{"--address", r.admin, "--file", file}, "chat request"},
		{module.ExplainCommand(), string(c.body()), []string{"--address", r.admin}, first.Replica},
		{module.ExplainCommand(), `{"prompt":"a"}`, []string{"--address", r.admin, "--path", "/v1/completions"}, "completions request"},
	} {
		out, err := run(t.Context(), test.cmd, test.in, test.args...)
		if err != nil || !strings.Contains(out, test.want) {
			t.Errorf("%s %q: %v in\n%s", test.cmd.Name(), test.args, err, out)
		}
	}
	for _, cmd := range []*cobra.Command{module.StatusCommand(), module.ExplainCommand()} {
		out, err := run(t.Context(), cmd, "{}", "--json", "--address", r.admin)
		if err != nil || !json.Valid([]byte(out)) {
			t.Errorf("%s: %v in\n%s", cmd.Name(), err, out)
		}
	}
}

func TestStatusIsWatchedUntilInterrupted(t *testing.T) {
	r := newAdminRig(t, 1, "")
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute) // for a test that fails
	defer interrupt()
	out := watched{looks: 2, interrupt: interrupt}
	cmd := module.StatusCommand()
	cmd.SetArgs([]string{"--watch", "--address", r.admin})
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(ctx); err != nil || out.looks > 0 {
		t.Errorf("%v in\n%s", err, &out)
	}
}

// watched interrupts what writes into it when it has shown the policy so often.
type watched struct {
	strings.Builder
	looks     int
	interrupt func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.looks -= strings.Count(string(p), "default: 1 policy")
	if w.looks <= 0 {
		w.interrupt()
	}
	return w.Builder.Write(p)
}

func TestCommandsSayWhatIsWrong(t *testing.T) {
	r := newAdminRig(t, 1, "")
	nobody := refuse.Address(t)
	for _, test := range []struct {
		cmd  *cobra.Command
		args []string
		want string
	}{
		{module.StatusCommand(), []string{"--address", nobody}, "asking the admin API at " + nobody},
		{module.StatusCommand(), []string{"--config", "/no/such/file"}, "determining admin API address"},
		{module.ExplainCommand(), []string{"--address", r.admin, "--state", "other"}, "no such state"},
		{module.ExplainCommand(), []string{"--address", r.admin, "--file", "/no/such/file"}, "reading request body"},
		{module.StatusCommand(), []string{"surplus"}, "unknown command"},
	} {
		if _, err := run(t.Context(), test.cmd, "", test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: error %v, want %q", test.cmd.Name(), test.args, err, test.want)
		}
	}
}
