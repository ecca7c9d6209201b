// Package integration holds end-to-end tests: a real Caddy with the policy in
// front of simulated engines.
package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed5db0839e/caddy-cache-aware/integration/engine"
	"github.com/seed5db0839e/caddy-cache-aware/integration/proxy"
	"github.com/seed5db0839e/caddy-cache-aware/internal/loopback"
	"github.com/seed5db0839e/caddy-cache-aware/module"
)

// rig is a proxy in front of simulated engines.
type rig struct {
	t       *testing.T
	engines []*engine.Server
	address string
	others  []string // further upstreams
	admin   string   // address of Caddy's admin endpoint, if it has one
	options string   // of the policy
	handler string   // further directives of reverse_proxy
	global  string   // further global options
	// reloaded tells that the configuration has changed under the requests. Caddy
	// then opens a new listening socket (SO_REUSEPORT) and closes the old one,
	// some time after the reload has returned, and the kernel resets connections
	// that the old one had not accepted yet, whatever the policy: no handler has
	// seen them, and they are made again.
	reloaded atomic.Bool
}

// retries is what the example configurations recommend.
const retries = `
	lb_retries 2
	lb_retry_match {
		method POST
	}
`

// newRig starts engines and a proxy. Both end with the test, which then checks
// that all bookings are closed.
func newRig(t *testing.T, replicas int, o engine.Options, options, handler string) *rig {
	t.Helper()
	r := &rig{t: t, options: options, handler: handler}
	r.startEngines(replicas, o)
	r.start()
	return r
}

func (r *rig) startEngines(n int, o engine.Options) {
	r.t.Helper()
	for range n {
		e, err := engine.Start(o)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = e.Close() })
		r.engines = append(r.engines, e)
	}
}

// start runs the proxy for the first time.
func (r *rig) start() {
	t := r.t
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	r.address = address
	r.configure()
	t.Cleanup(func() {
		r.awaitEmptyLedgers()
		if err := proxy.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// load reloads the configuration of the proxy.
func (r *rig) load() {
	r.t.Helper()
	r.reloaded.Store(true)
	r.configure()
}

// configure gives the proxy the configuration that the rig describes.
func (r *rig) configure() {
	r.t.Helper()
	upstreams := slices.Clone(r.others)
	for _, e := range r.engines {
		upstreams = append(upstreams, e.Addr())
	}
	site := fmt.Sprintf("reverse_proxy %s {\nlb_policy cache_aware {\nexplain\n%s\n}\n%s\n}", strings.Join(upstreams, " "), r.options, r.handler)
	if _, err := proxy.Start(proxy.Options{Address: r.address, Site: site, Admin: r.admin, Global: r.global}); err != nil {
		r.t.Fatal(err)
	}
}

// status returns what the policy knows of each replica, by address.
func (r *rig) status() map[string]replicaStatus {
	found := make(map[string]replicaStatus)
	for _, state := range module.Statuses() {
		for _, replica := range state.Replicas {
			found[replica.Replica] = replica.ReplicaStatus
		}
	}
	return found
}

// awaitEmptyLedgers fails the test if bookings stay open.
func (r *rig) awaitEmptyLedgers() {
	r.t.Helper()
	var open map[string]replicaStatus
	if !becomes(func() bool {
		open = make(map[string]replicaStatus)
		for address, s := range r.status() {
			if s.Queued != 0 || s.Running != 0 || s.Context != 0 || s.Prefill != 0 {
				open[address] = s
			}
		}
		return len(open) == 0
	}) {
		r.t.Errorf("bookings stay open: %+v", open)
	}
}

// await waits for what has to become true.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !becomes(condition) {
		t.Fatalf("still not: %s", what)
	}
}

// becomes tells whether a condition comes true within a minute, which is longer
// than any slow machine takes and only bounds a failing test.
func becomes(condition func() bool) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}

// chat is a request for a completion.
type chat struct {
	System, User string
	MaxTokens    int
	Silent       bool // not streamed
}

func (c chat) body() []byte {
	body, err := json.Marshal(map[string]any{
		"model": "simulated",
		"messages": []map[string]string{
			{"role": "system", "content": c.System},
			{"role": "user", "content": c.User},
		},
		"max_tokens":     c.MaxTokens,
		"stream":         !c.Silent,
		"stream_options": map[string]bool{"include_usage": true},
	})
	if err != nil {
		panic(err)
	}
	return body
}

// client opens a connection for each request: one that waits for the next
// request may be closed by a reload at the very moment it is used.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// answer is what a client saw of its request.
type answer struct {
	Status   int
	Replica  string
	Reason   string
	Matched  int
	Expected int  // tokens of the prompt, as estimated
	Begun    bool // some of the answer arrived
	Cached   int
	Prompt   int
	Complete bool
	Err      error
	Why      string // the whole header that explains the choice
}

var explanation = regexp.MustCompile(`upstream=([^;]+); matched=(\d+); prompt=\d+; reason=(\w+)`)

var expectation = regexp.MustCompile(`prompt=(\d+)`)

// send sends a request and reads the answer to its end.
func (r *rig) send(ctx context.Context, c chat) answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.address+"/v1/chat/completions", bytes.NewReader(c.body()))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.do(request)
	if err != nil {
		return answer{Err: err}
	}
	defer response.Body.Close()
	a := answerOf(response)
	a.read(response.Body, c.Silent)
	return a
}

// answerOf is what the header of an answer tells.
func answerOf(response *http.Response) answer {
	a := answer{Status: response.StatusCode, Why: response.Header.Get("Cache-Aware")}
	if m := explanation.FindStringSubmatch(a.Why); m != nil {
		a.Replica, a.Reason = m[1], m[3]
		a.Matched, _ = strconv.Atoi(m[2])
	}
	if m := expectation.FindStringSubmatch(a.Why); m != nil {
		a.Expected, _ = strconv.Atoi(m[1])
	}
	return a
}

// do makes a request, again if reloads have reset its connection.
func (r *rig) do(request *http.Request) (*http.Response, error) {
	response, err := client.Do(request)
	for tries := 0; r.reloaded.Load() && tries < 5 && isReset(err); tries++ {
		if request.GetBody != nil {
			request.Body, _ = request.GetBody()
		}
		response, err = client.Do(request)
	}
	return response, err
}

// isReset tells a connection that was reset. Reading and writing go on side by
// side: when one has met the reset, the other finds the connection ended, broken
// or closed.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

func (a *answer) read(body io.Reader, silent bool) {
	if silent {
		var whole []byte
		if whole, a.Err = io.ReadAll(body); a.Err == nil {
			a.Begun, a.Complete = len(whole) > 0, true
			a.learn(whole)
		}
		return
	}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		a.Begun = true
		if string(data) == "[DONE]" {
			a.Complete = true
			continue
		}
		a.learn(data)
	}
	a.Err = lines.Err()
}

// learn reads the usage out of one JSON text, if it has any.
func (a *answer) learn(text []byte) {
	var said struct {
		Usage *struct {
			PromptTokens        int `json:"prompt_tokens"`
			PromptTokensDetails struct {
				CachedTokens int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if json.Unmarshal(text, &said) == nil && said.Usage != nil {
		a.Prompt, a.Cached = said.Usage.PromptTokens, said.Usage.PromptTokensDetails.CachedTokens
	}
}

// sendAll sends requests at once and returns their answers in order.
func (r *rig) sendAll(chats []chat) []answer {
	answers := make([]answer, len(chats))
	var group sync.WaitGroup
	for i, c := range chats {
		group.Go(func() { answers[i] = r.send(r.t.Context(), c) })
	}
	group.Wait()
	return answers
}

// text is prose of about so many tokens, the same for the same seed.
func text(seed, tokens int) string {
	var b strings.Builder
	state := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for b.Len() < tokens*4 {
		state = state*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%x ", state>>52)
	}
	return b.String()
}

// share counts the answers per replica.
func share(answers []answer) map[string]int {
	counts := make(map[string]int)
	for _, a := range answers {
		counts[a.Replica]++
	}
	return counts
}

// get sends a GET request and reads the answer.
func (r *rig) get(path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response, err
}

func TestBrokenConnectionsAreTold(t *testing.T) {
	for _, broken := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, net.ErrClosed} {
		if err := fmt.Errorf("sending request: %w", &net.OpError{Op: "write", Err: broken}); !isReset(err) {
			t.Errorf("%v is not told", err)
		}
	}
	for _, err := range []error{nil, syscall.ECONNREFUSED, context.DeadlineExceeded} {
		if isReset(err) {
			t.Errorf("%v is taken for a broken connection", err)
		}
	}
}
