package tokenizer

import (
	"slices"
	"testing"
)

const testSecret = 42

func post(path, body string) *Input {
	return &Input{Method: "POST", Path: path, ContentType: "application/json", Body: []byte(body), Secret: testSecret}
}

func parse(t testing.TB, path, body string) *Prompt {
	t.Helper()
	var p Prompt
	if err := Parse(post(path, body), &p); err != nil {
		t.Fatalf("parsing %s: %v", body, err)
	}
	return &p
}

func keys(p *Prompt) []uint64 {
	ks := make([]uint64, len(p.Blocks))
	for i, b := range p.Blocks {
		ks[i] = b.Key
	}
	return ks
}

// last returns the key that stands for the whole prompt.
func last(p *Prompt) uint64 { return p.Blocks[len(p.Blocks)-1].Key }

// shared counts the leading blocks that two prompts have in common.
func shared(a, b *Prompt) int {
	n := 0
	for n < len(a.Blocks) && n < len(b.Blocks) && a.Blocks[n].Key == b.Blocks[n].Key {
		n++
	}
	return n
}

// assertSame fails unless all bodies give one chain.
func assertSame(t *testing.T, path string, bodies ...string) {
	t.Helper()
	want := parse(t, path, bodies[0])
	for _, body := range bodies[1:] {
		if got := parse(t, path, body); !slices.Equal(got.Blocks, want.Blocks) {
			t.Errorf("chains differ:\n%s\n%s", bodies[0], body)
		}
	}
}

// assertDistinct fails if two of the bodies give one chain.
func assertDistinct(t *testing.T, path string, bodies ...string) {
	t.Helper()
	seen := map[uint64]string{}
	for _, body := range bodies {
		k := last(parse(t, path, body))
		if other, ok := seen[k]; ok {
			t.Errorf("chains are equal:\n%s\n%s", other, body)
		}
		seen[k] = body
	}
}
