package workload

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const mooncakeLines = `{"timestamp": 3000, "input_length": 1100, "output_length": 20, "hash_ids": [0, 1, 7]}
{"timestamp": 0, "input_length": 600, "output_length": 10, "hash_ids": [0, 4]}

{"timestamp": 3000, "input_length": 512, "output_length": 0, "hash_ids": [0]}
{"timestamp": 3000, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]}
`

func TestMooncakeTrace(t *testing.T) {
	w, err := Trace{Name: "m"}.Read(strings.NewReader(mooncakeLines))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		start  time.Duration
		tokens []int
		output int
	}{
		{0, []int{512, 88}, 10},
		{3 * time.Second, []int{1024, 76}, 20},
		{4 * time.Second, []int{512}, 1},
		{5 * time.Second, []int{1024}, 5},
	}
	if w.Name != "m" || w.Users != 0 || len(w.Sessions) != len(want) {
		t.Fatalf("%+v", w)
	}
	for i, s := range w.Sessions {
		var tokens []int
		for _, segment := range s.Turns[0].Added {
			tokens = append(tokens, segment.Tokens)
		}
		if s.Start != want[i].start || !reflect.DeepEqual(tokens, want[i].tokens) || s.Turns[0].Answer.Tokens != want[i].output {
			t.Errorf("request %d at %v: %v, answer %d; want %+v", i, s.Start, tokens, s.Turns[0].Answer.Tokens, want[i])
		}
	}
	// Blocks 0 and 1 are one run of tokens, of which block 0 is the beginning.
	if a, b := w.Sessions[0].Turns[0].Added[0].ID, w.Sessions[1].Turns[0].Added[0].ID; a != b {
		t.Errorf("equal first blocks have the names %d and %d", a, b)
	}
}

const codingLines = `{"block_size": 64, "tool_tokens": 128, "system_tokens": 64, "requests": [
  {"type": "s", "in": 260, "out": 30, "hash_runs": [[1, 4]], "think_time": 5},
  {"type": "subagent", "requests": []},
  {"type": "n", "in": 400, "out": 40, "hash_runs": [[1, 6]], "think_time": 500}]}
{"block_size": 64, "tool_tokens": 128, "system_tokens": 64, "requests": [
  {"type": "s", "in": 256, "out": 30, "hash_runs": [[9, 4]], "think_time": 1}]}
`

func TestCodingTrace(t *testing.T) {
	lines := strings.ReplaceAll(strings.ReplaceAll(codingLines, "\n  ", ""), "\n\n", "\n")
	w, err := Trace{Users: 2, Ramp: 10 * time.Second, Seed: 1}.Read(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	if w.Users != 2 || len(w.Sessions) != 16 {
		t.Fatalf("%d users, %d sessions", w.Users, len(w.Sessions))
	}
	if w.Sessions[1].Turns[0].Think != 5*time.Second {
		t.Errorf("the second user begins at %v", w.Sessions[1].Turns[0].Think)
	}
	var long, short *Session // as they are when begun by a user who had others before
	for i := range w.Sessions[2:] {
		if s := &w.Sessions[2+i]; len(s.Turns) == 2 {
			long = s
		} else {
			short = s
		}
	}
	if long == nil || short == nil {
		t.Fatal("one of the two sessions is never drawn")
	}
	if long.Turns[1].Think != 2*time.Minute || !long.Turns[1].Fresh || long.Turns[1].Answer.Tokens != 40 {
		t.Errorf("second turn %+v", long.Turns[1])
	}
	a, b := long.Turns[0].Added, short.Turns[0].Added
	if a[0] != b[0] || a[0].Tokens != 192 {
		t.Errorf("tools and system prompt are %+v and %+v, want 192 equal tokens", a[0], b[0])
	}
	if a[1].ID == b[1].ID || a[1] != (Segment{a[1].ID, Raw, 64}) || a[2].Tokens != 4 {
		t.Errorf("own blocks %+v and %+v", a[1:], b[1:])
	}
	if second := long.Turns[1].Added; second[1].ID != a[1].ID || second[1].Tokens != 192 {
		t.Errorf("second turn %+v does not continue %+v", second, a)
	}
}

// A question, its answer, and what follows on the answer; another answer to the
// same question; a prompt that was not read.
const recordedLines = `{"timestamp":2000,"input_length":440,"output_length":9,"block_lengths":[100,50,210,80],"hash_ids":[11,12,13,14],"reply_blocks":[2]}
{"timestamp":500,"input_length":160,"output_length":200,"block_lengths":[102,50],"hash_ids":[11,12],"cached_length":0}
{"timestamp":2500,"input_length":430,"output_length":9,"block_lengths":[100,50,200,80],"hash_ids":[11,12,23,24],"reply_blocks":[2]}
{"timestamp":2600,"input_length":77,"output_length":0,"block_lengths":[],"hash_ids":[]}
`

func TestRecording(t *testing.T) {
	w, err := Trace{}.Read(strings.NewReader(recordedLines))
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Sessions) != 4 || w.Sessions[0].Start != 0 || w.Sessions[1].Start != 1500*time.Millisecond {
		t.Fatalf("%+v", w.Sessions)
	}
	question, follow, other, unread := w.Sessions[0].Turns[0], w.Sessions[1].Turns[0], w.Sessions[2].Turns[0], w.Sessions[3].Turns[0]
	tokens := func(turn Turn) (list []int) {
		for _, s := range turn.Added {
			list = append(list, s.Tokens)
		}
		return list
	}
	for _, c := range []struct {
		turn Turn
		want []int
	}{
		{question, []int{102, 50, 8}},
		{follow, []int{102, 50, 210, 80}},
		{other, []int{102, 50, 200, 80}},
		{unread, []int{77}},
	} {
		if got := tokens(c.turn); !reflect.DeepEqual(got, c.want) {
			t.Errorf("lengths %v, want %v", got, c.want)
		}
	}
	if !reflect.DeepEqual(question.Added[:2], follow.Added[:2]) || !reflect.DeepEqual(question.Added[:2], other.Added[:2]) {
		t.Error("equal blocks have different names")
	}
	if c := [4]uint64{w.Sessions[0].Client, w.Sessions[1].Client, w.Sessions[2].Client, w.Sessions[3].Client}; c != [4]uint64{1, 1, 1, 4} {
		t.Errorf("clients %v, want those of the first three to be one", c)
	}
	if question.Answer.ID != follow.Added[2].ID {
		t.Error("the answer is not what the next prompt repeats")
	}
	if other.Added[2].ID == follow.Added[2].ID {
		t.Error("different answers have the same name")
	}
	if unread.Answer.Tokens != 1 {
		t.Errorf("an answer of %d tokens", unread.Answer.Tokens)
	}
}

func TestBadTraces(t *testing.T) {
	mooncake := func(fields string) string {
		return `{"timestamp":0,"input_length":5,"hash_ids":[1]}` + "\n{" + fields + "}"
	}
	recorded := func(fields string) string { return `{"block_lengths":[],"input_length":1}` + "\n{" + fields + "}" }
	for _, c := range []struct{ name, text, message string }{
		{"nothing", "", "it is empty"},
		{"no JSON", "a,b\n", "line 1 is no JSON object"},
		{"an array", "[1]\n", "line 1 is no JSON object"},
		{"something else", `{"prompt":"hello"}`, "neither hash_ids nor requests"},
		{"cut off", mooncake(`"hash_ids":[`), "line 2: "},
		{"no length", mooncake(`"hash_ids":[1]`), "line 2: input_length is 0, want 1 to 512 for 1 hash_ids"},
		{"too few blocks", mooncake(`"input_length":600,"hash_ids":[1]`), "input_length is 600"},
		{"microseconds", mooncake(`"timestamp":1e18,"input_length":5,"hash_ids":[1]`), "timestamp is 1e+18"},
		{"no block size", `{"requests":[]}`, "block_size is 0"},
		{"no sessions", `{"block_size":64,"requests":[]}`, "none found"},
		{"too few lengths", recorded(`"input_length":9,"hash_ids":[1,2],"block_lengths":[3]`), "1 block_lengths for 2 hash_ids"},
		{"too long blocks", recorded(`"input_length":9,"hash_ids":[1,2],"block_lengths":[3,7]`), "do not fit"},
		{"negative block", recorded(`"input_length":9,"hash_ids":[1],"block_lengths":[-1]`), "do not fit"},
		{"unknown reply", recorded(`"input_length":9,"hash_ids":[1],"block_lengths":[3],"reply_blocks":[1]`), "reply_blocks has 1, want 0 to 0"},
		{"huge answer", recorded(`"input_length":9,"output_length":1e12,"hash_ids":[],"block_lengths":[]`), "output_length"},
	} {
		if _, err := (Trace{Users: 1}).Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.message)
		}
	}
}

// The readers on the public traces, where they are at hand.
func TestPublicTraces(t *testing.T) {
	for file, sessions := range map[string]int{
		"mooncake_fast25_conversation_trace.jsonl.gz": 12_031,
		"claude_code_sessions.jsonl.gz":               8 * 10,
	} {
		t.Run(file, func(t *testing.T) {
			packed, err := os.Open(filepath.Join("..", "..", "..", "shared", "traces", file))
			if os.IsNotExist(err) {
				t.Skip("the public traces are not here")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer packed.Close()
			plain, err := gzip.NewReader(packed)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Trace{Users: 10, Seed: 1}.Read(plain)
			if err != nil || len(w.Sessions) != sessions {
				t.Errorf("%d sessions, error %v", len(w.Sessions), err)
			}
		})
	}
}

func FuzzTrace(f *testing.F) {
	f.Add([]byte(mooncakeLines))
	f.Add([]byte(strings.ReplaceAll(codingLines, "\n  ", "")))
	f.Add([]byte(recordedLines))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Trace{Users: 2, Seed: 1}.Read(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		w.Fit(100_000)
		for _, s := range w.Sessions {
			for _, turn := range s.Turns {
				total := 0
				for _, segment := range turn.Added {
					if total += segment.Tokens; segment.Tokens < 0 {
						t.Fatalf("segment %+v", segment)
					}
				}
				if total > 100_000 || turn.Answer.Tokens < 1 || turn.Think < 0 || s.Start < 0 {
					t.Fatalf("%d tokens, turn %+v at %v", total, turn, s.Start)
				}
			}
		}
	})
}
