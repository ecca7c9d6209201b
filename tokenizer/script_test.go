package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// countFurther is what furtherBytes estimates.
func countFurther(text string) int { return len(text) - utf8.RuneCountInString(text) }

func TestFurtherBytesOfOneScript(t *testing.T) {
	for name, unit := range map[string]string{
		"ASCII": "lorem ipsum ", "Cyrillic": "данные", "Chinese": "数据", "emoji": "😀", "marks": "\xff\xff",
	} {
		for _, size := range []int{0, 1, 31, 32, 33, 100, 1024, 5000, 64 << 10} {
			text := strings.Repeat(unit, size/len(unit)+1)[:size]
			want := countFurther(text)
			if name == "marks" {
				want = 0
			}
			got := furtherBytes([]byte(text))
			if diff := got - want; max(diff, -diff) > size/20+2 {
				t.Errorf("%d bytes of %s: %d further ones, want about %d", size, name, got, want)
			}
		}
	}
}

func TestFurtherBytesNeverExceedTheText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(0x80 + rng.IntN(0x40))
		}
		if got := furtherBytes(text); got != n {
			t.Errorf("%d bytes: %d further ones", n, got)
		}
	}
}

// scripts returns n texts of 100 to 3,000 bytes in alternating scripts.
func scripts(n int) (texts []string) {
	rng := rand.New(rand.NewPCG(3, 4))
	units := []string{"lorem ipsum ", "данные и ", "数据引擎", "größe "}
	for i := range n {
		unit := units[i%len(units)]
		texts = append(texts, strings.Repeat(unit, (100+rng.IntN(2900))/len(unit)))
	}
	return texts
}

// TestScriptOfConversation has text in several scripts, escaped and not, images,
// tools and a short tail.
func TestScriptOfConversation(t *testing.T) {
	want := 0
	var messages []any
	for _, text := range append(scripts(40), "数") {
		want += countFurther(text)
		messages = append(messages, object{"role": "user", "content": []any{
			object{"type": "text", "text": text},
			object{"type": "image_url", "image_url": object{"url": "data:image/png;base64,AAAA"}},
		}})
	}
	description := strings.Repeat("数据", 500)
	want += countFurther(description)
	plain := string(encode(object{"model": "m", "messages": messages, "tools": []any{
		object{"type": "function", "function": object{"name": "f", "description": description, "parameters": object{}}},
	}}))
	for form, body := range map[string]string{"plain": plain, "escaped": escapeNonASCII(plain)} {
		p := parse(t, chatPath, body)
		if got := p.Text().Further; got < want*9/10 || got > want*11/10 {
			t.Errorf("%s: %d further bytes, want about %d", form, got, want)
		}
		wantGrowing(t, p)
	}
}

// wantGrowing checks that every block's text includes the one before.
func wantGrowing(t *testing.T, p *Prompt) {
	t.Helper()
	last := Text{}
	for i := range p.Blocks {
		next := p.Blocks[i].Text()
		if grown := next.Further - last.Further; grown < 0 || grown > next.Bytes-last.Bytes {
			t.Fatalf("block %d goes from %+v to %+v", i, last, next)
		}
		last = next
	}
}

// escapeNonASCII writes a JSON text in ASCII.
func escapeNonASCII(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[r>>shift&15])
		}
	}
	return b.String()
}

// TestScriptOfFurtherPrompts has what no key covers.
func TestScriptOfFurtherPrompts(t *testing.T) {
	query := strings.Repeat("数", 10)
	p := parse(t, "/v1/rerank", `{"model":"m","query":"`+query+`","documents":["数","据","x"]}`)
	if got, want := p.Text().Further, 3*2*10+2*2; got < want-2 || got > want+2 {
		t.Errorf("rerank: %d further bytes, want about %d", got, want)
	}
	long := strings.Repeat("数", 1000)
	p = parse(t, "/v1/completions", `{"model":"m","prompt":["`+long+`","`+long+`","x"]}`)
	if got, want := p.Text().Further, 4000; got < want*9/10 || got > want*11/10 {
		t.Errorf("batch: %d further bytes, want about %d", got, want)
	}
}

func BenchmarkFurtherBytes(b *testing.B) {
	text := []byte(prose(rand.New(rand.NewPCG(1, 1)), 4096))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		furtherBytes(text)
	}
}
