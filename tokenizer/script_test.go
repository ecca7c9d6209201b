package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func countNonASCII(text string) (n int) {
	for _, c := range []byte(text) {
		if c >= 0x80 {
			n++
		}
	}
	return n
}

func TestNonASCII(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(rng.IntN(256))
		}
		if got, want := nonASCII(text), countNonASCII(string(text)); got != want {
			t.Errorf("%d bytes: counted %d, want %d", n, got, want)
		}
	}
}

// TestScriptOfPrompts has text in several scripts, escaped and not, in all the
// places where the stream carries text, marks and what is no text.
func TestScriptOfPrompts(t *testing.T) {
	texts := []string{"plain", "größe", "数据", "данные", "😀", "", strings.Repeat("数据 and ", 500)}
	for _, long := range []bool{false, true} {
		var content strings.Builder
		for i, text := range texts {
			if long {
				text = strings.Repeat(text, 100)
			}
			texts[i] = text
			content.WriteString(text)
		}
		want := 2*countNonASCII(content.String()) + countNonASCII("größe")
		messages := []any{object{"role": "system", "content": content.String()}}
		for _, text := range texts {
			messages = append(messages, object{"role": "user", "content": []any{
				object{"type": "text", "text": text},
				object{"type": "image_url", "image_url": object{"url": "data:image/png;base64,AAAA"}},
			}})
		}
		body := object{"model": "m", "messages": messages, "tools": []any{object{"type": "function", "function": object{"name": "größe", "parameters": object{}}}}}
		plain := string(encode(body))
		for form, text := range map[string]string{"plain": plain, "escaped": escapeNonASCII(plain)} {
			p := parse(t, chatPath, text)
			if got := p.Text().NonASCII; got != want {
				t.Errorf("%s: %d bytes are not ASCII, want %d", form, got, want)
			}
			last := Text{}
			for i := range p.Blocks {
				next := p.Blocks[i].Text()
				if next.NonASCII < last.NonASCII || next.NonASCII-last.NonASCII > next.Bytes-last.Bytes {
					t.Fatalf("%s: block %d goes from %+v to %+v", form, i, last, next)
				}
				last = next
			}
		}
	}
}

// escapeNonASCII writes a JSON text in ASCII.
func escapeNonASCII(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	unit := func(u rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[u>>shift&15])
		}
	}
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			unit(r)
		default:
			unit(0xd800 + (r-0x10000)>>10)
			unit(0xdc00 + (r-0x10000)&0x3ff)
		}
	}
	return b.String()
}

// TestScriptOfFurtherPrompts has what no key covers.
func TestScriptOfFurtherPrompts(t *testing.T) {
	p := parse(t, "/v1/rerank", `{"model":"m","query":"größe","documents":["数","据","x"]}`)
	if got, want := p.Text().NonASCII, 3*4+6; got != want {
		t.Errorf("%d bytes are not ASCII, want %d", got, want)
	}
	p = parse(t, "/v1/completions", `{"model":"m","prompt":["`+strings.Repeat("数", 1000)+`","数","x"]}`)
	if got, want := p.Text().NonASCII, 3*1001; got != want {
		t.Errorf("%d bytes are not ASCII, want %d", got, want)
	}
}

func BenchmarkNonASCII(b *testing.B) {
	text := []byte(prose(rand.New(rand.NewPCG(1, 1)), 4096))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		nonASCII(text)
	}
}
