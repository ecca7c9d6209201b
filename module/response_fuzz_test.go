package module

import (
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzResponseScanner checks that an answer says the same however it is cut
// into pieces.
func FuzzResponseScanner(f *testing.F) {
	files, err := filepath.Glob("testdata/answers/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recorded answers: %v", err)
	}
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(i), uint8(7*i))
	}
	f.Add([]byte(`{"id":"resp_1","usage":{"input_tokens":1e999,"output_tokens":-0}}`), uint8(0), uint8(1))
	types := []string{"application/json", "text/event-stream", "application/x-ndjson"}
	f.Fuzz(func(t *testing.T, answer []byte, kind, piece uint8) {
		header := http.Header{"Content-Type": {types[int(kind)%len(types)]}}
		whole, cut := newResponseScanner(header), newResponseScanner(header)
		whole.feed(answer)
		for rest := answer; len(rest) > 0; {
			n := min(len(rest), int(piece)+1)
			cut.feed(rest[:n])
			rest = rest[n:]
		}
		want, known := whole.usage()
		got, cutKnown := cut.usage()
		if known != cutKnown || !reflect.DeepEqual(got, want) || whole.firstToken() != cut.firstToken() {
			t.Errorf("in pieces of %d: %+v, whole: %+v", int(piece)+1, got, want)
		}
		if len(want.responseID) > maxIDBytes {
			t.Errorf("id of %d bytes", len(want.responseID))
		}
	})
}
