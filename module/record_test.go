package module

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

func recorderOf(t testing.TB) *recording {
	t.Helper()
	r, err := newRecording(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var recordedBlocks = []selection.Block{{Key: 11, Tokens: 100}, {Key: 12, Tokens: 150, Reply: true}, {Key: 13, Tokens: 400}}

func TestRecordedLines(t *testing.T) {
	r := recorderOf(t)
	ids := []uint64{r.id(11), r.id(12), r.id(13)}
	cached := func(n int) *int { return &n }
	request := &selection.Request{Blocks: recordedBlocks, Tokens: 400, Extra: 20}
	unread := &selection.Request{}
	for _, test := range []struct {
		name    string
		request *selection.Request
		how     result
		ttft    time.Duration
		said    usage
		want    *recordedLine
	}{
		{"as counted by the engine", request, resultAnswered, 250 * time.Millisecond,
			usage{promptTokens: 630, outputTokens: 7, cachedTokens: 100, cachedKnown: true},
			&recordedLine{1500, 630, 7, []int{150, 75, 375}, ids, []int{1}, cached(100), 250, 0}},
		{"as estimated", request, resultAnswered, 0, usage{},
			&recordedLine{1500, 420, 0, []int{100, 50, 250}, ids, []int{1}, nil, 0, 0}},
		{"less than it found cached", request, resultAnswered, 0, usage{promptTokens: 50, cachedTokens: 840, cachedKnown: true},
			&recordedLine{1500, 840, 0, []int{200, 100, 500}, ids, []int{1}, cached(840), 0, 0}},
		{"the client left during the answer", request, resultCancelled, time.Second, usage{outputTokens: 3},
			&recordedLine{1500, 420, 3, []int{100, 50, 250}, ids, []int{1}, nil, 1000, 0}},
		{"unread but counted", unread, resultAnswered, 0, usage{promptTokens: 9, outputTokens: 1},
			&recordedLine{1500, 9, 1, []int{}, []uint64{}, nil, nil, 0, 0}},
		{"the client left before", request, resultCancelled, 0, usage{}, nil},
		{"failed", request, resultFailed, 0, usage{}, nil},
		{"no work", &selection.Request{Work: selection.Light}, resultAnswered, 0, usage{promptTokens: 4}, nil},
	} {
		r.take(test.request, r.began.Add(1500*time.Millisecond)).close(test.how, test.ttft, test.said)
		var got *recordedLine
		if len(r.ended) > 0 {
			got = r.line(<-r.ended)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// Whoever has two recordings of the same traffic cannot tell that it is the same,
// nor where it is in the index.
func TestRecordingsHaveNoKeyInCommon(t *testing.T) {
	one, other := recorderOf(t), recorderOf(t)
	for key := range uint64(1000) {
		if one.id(key) != one.id(key) {
			t.Fatal("a key has two names in one recording")
		}
		if one.id(key) == other.id(key) || one.id(key) == key || one.id(key) >= 1<<53 {
			t.Fatalf("key %d is called %d and %d", key, one.id(key), other.id(key))
		}
		// Nor by how the names of two keys differ.
		if one.id(key)^one.id(key+1) == other.id(key)^other.id(key+1) {
			t.Fatalf("the names of %d and the next differ alike", key)
		}
	}
}

func TestASlowReaderCostsLinesNotMemory(t *testing.T) {
	r := recorderOf(t)
	request := &selection.Request{Blocks: recordedBlocks, Tokens: 400}
	for range recordingBuffer + 5 {
		r.take(request, r.began).close(resultAnswered, 0, usage{})
	}
	if len(r.ended) != recordingBuffer {
		t.Fatalf("%d wait for the reader, want %d", len(r.ended), recordingBuffer)
	}
	r.take(&selection.Request{}, r.began) // of unknown length, and still open
	if first := r.line(<-r.ended); first.LeftOut != 5 {
		t.Errorf("%d left out, want 5", first.LeftOut)
	}
	r.take(&selection.Request{}, r.began).close(resultAnswered, 0, usage{})
	for range recordingBuffer - 1 {
		if l := r.line(<-r.ended); l.LeftOut != 0 {
			t.Fatalf("%d left out again", l.LeftOut)
		}
	}
	if l := r.line(<-r.ended); l != nil {
		t.Errorf("a request of unknown length is recorded as %+v", l)
	}
	r.take(request, r.began).close(resultAnswered, 0, usage{})
	if l := r.line(<-r.ended); l.LeftOut != 1 {
		t.Errorf("%d left out, want 1", l.LeftOut)
	}
}

func TestNothingIsRecordedWhileNobodyReads(t *testing.T) {
	p := newTestPolicy(t, "unrecorded", 1)
	if a := p.route(chatOf("a")); a.outcome.recorded != nil {
		t.Error("a request is recorded")
	}
	if n := testing.AllocsPerRun(100, func() {
		p.state.recording.Load().take(&selection.Request{}, time.Time{}).close(resultAnswered, 0, usage{})
	}); n != 0 {
		t.Errorf("%v allocations while nothing is recorded", n)
	}
}

// adminServer serves the admin API over HTTP.
func adminServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for _, route := range new(adminCacheAware).Routes() {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			var api caddy.APIError
			if err := route.Handler.ServeHTTP(w, r); errors.As(err, &api) {
				http.Error(w, err.Error(), api.HTTPStatus)
			} else if err != nil {
				t.Errorf("%s: %v", r.URL, err)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// record begins a recording, which has begun when it returns.
func record(t *testing.T, ctx context.Context, server *httptest.Server, query string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+recordPath+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// awaitNoRecording waits until a state is not recorded any more.
func awaitNoRecording(t *testing.T, s *state) {
	t.Helper()
	awaitTrue(t, "the recording has ended", func() bool { return s.recording.Load() == nil })
}

func TestRecordingIsStreamedUntilTheClientLeaves(t *testing.T) {
	p, server := newTestPolicy(t, "streamed", 1), adminServer(t)
	ctx, leave := context.WithCancel(t.Context())
	response := record(t, ctx, server, "state=streamed")
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/jsonl" {
		t.Fatalf("status %d, header %v", response.StatusCode, response.Header)
	}
	if second := record(t, t.Context(), server, "state=streamed"); second.StatusCode != http.StatusConflict {
		t.Errorf("a second reader gets status %d", second.StatusCode)
	}
	lines := bufio.NewScanner(response.Body)
	const secret = "the quick brown fox "
	for i := range 3 {
		attempt := p.route(chatOf(secret))
		attempt.usage(usage{promptTokens: 100 + i, outputTokens: 5})
		attempt.ended(time.Now())
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		var line recordedLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.InputLength != 100+i || line.OutputLength != 5 || len(line.HashIDs) == 0 {
			t.Errorf("line %s", lines.Bytes())
		}
		if strings.Contains(lines.Text(), "fox") {
			t.Errorf("text in %s", lines.Bytes())
		}
		for _, b := range blocksOfChat(p, secret) {
			if strings.Contains(lines.Text(), fmt.Sprint(b.Key)) {
				t.Errorf("a key of the index in %s", lines.Bytes())
			}
		}
	}
	leave()
	awaitNoRecording(t, p.state)
	if third := record(t, t.Context(), server, "state=streamed&duration=50ms"); third.StatusCode != http.StatusOK {
		t.Errorf("another reader, later, gets status %d", third.StatusCode)
	}
	awaitNoRecording(t, p.state)
}

// blocksOfChat are the blocks of a chat's prompt as they are in the index.
func blocksOfChat(p testPolicy, content string) []selection.Block {
	r, cancel := benchmarkRequest([]byte(chatOf(content)))
	defer cancel()
	call := p.callOf(r)
	defer call.body.release()
	return call.request.Blocks
}

func TestRecordingEndsWithItsState(t *testing.T) {
	server := adminServer(t)
	policy := &CacheAware{Name: "ending"}
	if err := errors.Join(policy.setDefaults(), policy.acquireState()); err != nil {
		t.Fatal(err)
	}
	response := record(t, t.Context(), server, "state=ending")
	if err := policy.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(response.Body); lines.Scan() || lines.Err() != nil {
		t.Errorf("line %q, error %v", lines.Text(), lines.Err())
	}
}

func TestRecordingRejectsNonsense(t *testing.T) {
	newTestPolicy(t, "recorded", 1)
	for target, want := range map[string]int{
		"/cache_aware/record?state=unknown":               404,
		"/cache_aware/record?state=recorded&duration=0s":  400,
		"/cache_aware/record?state=recorded&duration=-1s": 400,
		"/cache_aware/record?state=recorded&duration=now": 400,
	} {
		if got := ask(t, http.MethodPost, target, "", nil); got != want {
			t.Errorf("%s: status %d, want %d", target, got, want)
		}
	}
	if got := ask(t, http.MethodGet, "/cache_aware/record?state=recorded", "", nil); got != 405 {
		t.Errorf("GET: status %d", got)
	}
}

// TestTheTraceFormatIsDocumented compares the fields with the table, both ways.
func TestTheTraceFormatIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/trace-format.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(text), "\n## ")
	var documented, written []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	line := reflect.TypeFor[recordedLine]()
	for i := range line.NumField() {
		name, _, _ := strings.Cut(line.Field(i).Tag.Get("json"), ",")
		written = append(written, name)
	}
	if !slices.Equal(documented, written) {
		t.Errorf("documented %q, written %q", documented, written)
	}
}

func TestLeftOutIsCounted(t *testing.T) {
	line, err := json.Marshal(recordedLine{LeftOut: 123, HashIDs: []uint64{1}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int64{string(line): 123, `{"a":1}`: 0, `{"left_out":`: 0, "": 0} {
		if got := leftOut([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// BenchmarkRecordedLine makes the line of a prompt of about 100,000 tokens, which
// the goroutine of the reader does.
func BenchmarkRecordedLine(b *testing.B) {
	r := recorderOf(b)
	blocks := make([]selection.Block, 200)
	for i := range blocks {
		blocks[i] = selection.Block{Key: uint64(i), Tokens: uint32(500 * (i + 1))}
	}
	q := &recordedRequest{into: r, at: r.began, blocks: blocks, estimated: 100_000, said: usage{promptTokens: 110_000}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(r.line(q)); err != nil {
			b.Fatal(err)
		}
	}
}
