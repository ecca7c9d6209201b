package engine

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func pieces(text string) (all []string) {
	for text != "" {
		n := pieceLen(text)
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

func TestPiecesAreShortAndStopAtSpaces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		all := pieces(text)
		if strings.Join(all, "") != text {
			rt.Fatalf("pieces %q are not %q", all, text)
		}
		for _, p := range all {
			if len(p) > 7 || strings.ContainsAny(p[1:], " \n") {
				rt.Fatalf("piece %q", p)
			}
		}
	})
}

func TestTextCutAtATokenKeepsItsTokens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := pieces(rapid.String().Draw(rt, "text"))
		n := rapid.IntRange(0, len(all)).Draw(rt, "tokens")
		if got := pieces(strings.Join(all[:n], "")); !slices.Equal(got, all[:n]) {
			rt.Fatalf("pieces of the cut text %q, want %q", got, all[:n])
		}
	})
}

func TestTokensAlignWithNoByteSize(t *testing.T) {
	lengths := map[int]int{}
	for _, p := range pieces(Text(1, 5000)) {
		lengths[len(p)]++
	}
	for n := 1; n <= 7; n++ {
		if lengths[n] < 50 {
			t.Errorf("%d of 5,000 tokens have %d bytes", lengths[n], n)
		}
	}
}

func TestComposedTextHasTheTokensAskedFor(t *testing.T) {
	for n := range 200 {
		text, ends := compose(uint64(n), n)
		if got := CountTokens(text); got != n || len(ends) != n {
			t.Errorf("%d tokens and %d ends, want %d", got, len(ends), n)
		}
		end := 0
		for i, p := range pieces(text) {
			if end += len(p); ends[i] != end {
				t.Errorf("token %d of %d ends at %d, want %d", i, n, ends[i], end)
			}
		}
	}
	if Text(1, 50) == Text(2, 50) || Text(3, 50) != Text(3, 50) {
		t.Error("texts do not follow their seeds")
	}
}

func TestChainKeysFollowContent(t *testing.T) {
	build := func(root uint64, text string) *Chain {
		c := NewChain(root, 16)
		c.AddText(text)
		return c
	}
	long := Text(1, 200)
	whole, part := build(0, long), build(0, long[:len(long)/2])
	shared := 0
	for shared < len(part.Keys()) && part.Keys()[shared] == whole.Keys()[shared] {
		shared++
	}
	if len(whole.Keys()) != 200/16 || shared < part.Len()/16-1 || shared == 0 {
		t.Errorf("%d keys; the first half has %d, %d of them shared", len(whole.Keys()), len(part.Keys()), shared)
	}
	for _, other := range []*Chain{build(1, long), build(0, "x"+long)} {
		for i, key := range other.Keys() {
			if i < len(whole.Keys()) && key == whole.Keys()[i] {
				t.Errorf("key %d is that of another sequence", i)
			}
		}
	}
}
