// Package clients calls a real Caddy with the official client libraries. It is
// a module of its own, so that these are no dependencies of the policy.
package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// calls are made twice: through least_conn in front of one engine, and through
// cache_aware in front of three. A call gets the base URL and returns what the
// client made of the answers, as something that can be compared as JSON.
type calls map[string]func(ctx context.Context, base string) (any, error)

func TestOpenAI(t *testing.T)    { compare(t, openAICalls) }
func TestAnthropic(t *testing.T) { compare(t, anthropicCalls) }
func TestOllama(t *testing.T)    { compare(t, ollamaCalls) }

// TestNode runs the official npm client, which run.sh installs.
func TestNode(t *testing.T) {
	if _, err := os.Stat("node/node_modules/openai"); err != nil {
		t.Skip("the npm client is not installed: use run.sh")
	}
	compare(t, calls{"all": func(ctx context.Context, base string) (any, error) {
		command := exec.CommandContext(ctx, "node", "node/calls.mjs", base)
		out, err := command.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		return strings.Split(string(out), "\n"), nil
	}})
}

// callTime bounds one call, or all of those in node.
const callTime = 20 * time.Second

func compare(t *testing.T, all calls) {
	plain, ours := startCaddy(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			want := run(t, all[name], plain)
			for range 3 { // so that later ones find a warm replica
				if got := run(t, all[name], ours); got != want {
					t.Errorf("with cache_aware %s\nwith least_conn  %s", got, want)
				}
			}
		})
	}
}

func run(t *testing.T, call func(context.Context, string) (any, error), base string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	got, err := call(ctx, base)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < 10 {
		t.Fatalf("the call brought nothing: %s", text)
	}
	return string(text)
}

var caddyBinary string

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "clients")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	caddyBinary = filepath.Join(directory, "caddy")
	build := exec.Command("go", "build", "-C", "../..", "-o", caddyBinary, "./cmd/caddy")
	code := 1
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building Caddy: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

const caddyfile = `{
	admin off
	persist_config off
	storage file_system %s
}
http://%s {
	reverse_proxy %s {
		lb_policy least_conn
	}
}
http://%s {
	reverse_proxy %s %s %s {
		lb_policy cache_aware {
			session_header X-Session
		}
	}
}
`

// startCaddy runs a Caddy in front of engines of its own and returns the URLs
// with least_conn and with cache_aware.
func startCaddy(t *testing.T) (plain, ours string) {
	t.Helper()
	directory := t.TempDir()
	plain, ours = freeAddress(t), freeAddress(t)
	config := fmt.Sprintf(caddyfile, directory, plain, startEngine(t), ours, startEngine(t), startEngine(t), startEngine(t))
	file := filepath.Join(directory, "Caddyfile")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(caddyBinary, "run", "--config", file)
	command.Env = append(os.Environ(), "HOME="+directory, "XDG_CONFIG_HOME="+directory, "XDG_DATA_HOME="+directory)
	log := new(strings.Builder)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("Caddy ended with %v:\n%s", err, log)
		}
	})
	awaitListener(t, plain)
	awaitListener(t, ours)
	return "http://" + plain, "http://" + ours
}

func awaitListener(t *testing.T, address string) {
	t.Helper()
	var err error
	for range 200 {
		var connection net.Conn
		if connection, err = net.Dial("tcp", address); err == nil {
			_ = connection.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal(err)
}

// freeAddress is below the ports that systems hand out by themselves, so that
// nobody takes it before Caddy does.
func freeAddress(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		var listener net.Listener
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12768))
		if listener, err = net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal(err)
	return ""
}
