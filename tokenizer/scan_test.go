package tokenizer

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// decode makes of a tape what encoding/json makes of the text.
func decode(d *document, v value) any {
	switch d.kind(v) {
	case kindBool:
		return d.isTrue(v)
	case kindNumber, kindOpaque:
		return json.Number(d.raw(v))
	case kindString:
		return toValid(d.str(v))
	case kindNumbers:
		list := []any{}
		for _, n := range strings.FieldsFunc(string(d.raw(v)), func(r rune) bool { return strings.ContainsRune("[], \t\r\n", r) }) {
			list = append(list, json.Number(n))
		}
		return list
	case kindArray:
		list := []any{}
		for e := range d.elements(v) {
			list = append(list, decode(d, e))
		}
		return list
	case kindObject:
		fields := object{}
		for key, val := range d.fields(v) {
			key := toValid(key)
			fields[key] = decode(d, val)
		}
		return fields
	}
	return nil
}

// toValid puts U+FFFD for every byte that is no UTF-8, as encoding/json does.
func toValid(b []byte) string {
	var out []rune
	for _, r := range string(b) {
		out = append(out, r)
	}
	return string(out)
}

func nesting(body []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '[' || c == '{'):
			depth++
			deepest = max(deepest, depth)
		case !inString && (c == ']' || c == '}'):
			depth--
		}
	}
	return deepest
}

// checkScan compares the tape with encoding/json where that accepts the text, and looks
// for broken tapes where it does not.
func checkScan(t *testing.T, body []byte) {
	var d document
	if _, err := d.scan(body, true); err == nil && len(d.tape) > int(root) {
		for v := root; int(v) < len(d.tape); v++ {
			if n := d.tape[v]; n.start > n.end || int(n.end) > len(body) || int(n.next) > len(d.tape) || n.next <= uint32(v) {
				t.Fatalf("broken node %d: %+v", v, n)
			}
		}
		decode(&d, root)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var want any
	if !json.Valid(body) || dec.Decode(&want) != nil || nesting(body) >= maxDepth {
		return
	}
	if cut, err := d.scan(body, false); cut || err != nil {
		t.Fatalf("scanning valid JSON: cut %v, %v", cut, err)
	}
	if got := decode(&d, root); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %#v\nwant %#v", got, want)
	}
}

var scanCases = []string{
	`{}`, `[]`, `null`, `"x"`, `-1.5e3`, `{"a":[1,2,3],"b":[1,"2"],"c":[[1],[2,3]],"d":{"e":{}}}`,
	`{"a":1,"a":2}`, `{"\u0061":1}`, `["\\","\"","\\\"","\\\\"]`, `["\ud83d\ude00","\ud83d","\ude00x","\ud83d\u0041"]`,
	"\"\xff\xc3(\"", `[true,false,null]`, ` { "a" : [ ] } `, `[1, 2 ,3 ]`, `[[[[]]]]`, `[{"a":[{}]}]`, `"\/\b\f\n\r\t"`,
	`[-1,2.5,1e9]`, `{"":""}`, `[1,{"a":2}]`,
}

func TestScanAgainstEncodingJSON(t *testing.T) {
	for _, body := range scanCases {
		checkScan(t, []byte(body))
	}
}

func TestScanErrors(t *testing.T) {
	for _, body := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":1`, `[1,2`, `["x`, `{]`, `[}`, `{"a":}`, `{1:2}`, `[@]`, `{"a":"b\`, `]`} {
		var d document
		if _, err := d.scan([]byte(body), false); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
}

func TestScanTruncated(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"a":1,"b":"x`, `{"a":1,"b":"x"}`},
		{`{"a":1,"b":"x\`, `{"a":1,"b":"x"}`},
		{`{"a":1,"b":"x\u00`, `{"a":1,"b":"x"}`},
		{`{"a":1,"b"`, `{"a":1}`},
		{`{"a":1,"b`, `{"a":1}`},
		{`{"a":1,"b":12`, `{"a":1}`},
		{`{"a":[{"b":[1,2`, `{"a":[{"b":[1,2]}]}`},
		{`{"a":["b",`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}`, `{"a":{"b":"c"}}`},
	} {
		var d document
		cut, err := d.scan([]byte(tt.body), true)
		if err != nil || !cut {
			t.Errorf("%s: cut %v, %v", tt.body, cut, err)
		}
		dec := json.NewDecoder(strings.NewReader(tt.want))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := decode(&d, root); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v", tt.body, got)
		}
	}
}

func TestScanBounds(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000)
	p := parse(t, chatPath, `{"messages":[{"role":"user","content":"x","extra":`+deep+`}]}`)
	if shared(p, parse(t, chatPath, `{"messages":[{"role":"user","content":"x"}]}`)) != 1 {
		t.Error("a deep field that is not rendered counts")
	}
	in := post(chatPath, `{"messages":`+strings.Repeat("[", 10000))
	in.Truncated = true
	if err := Parse(in, p); err != nil && err != NoPrompt {
		t.Error(err)
	}
	many := `{"messages":[` + strings.Repeat(`{},`, maxNodes+1) + `{}]}`
	if err := Parse(post(chatPath, many), p); err != nil || !p.Truncated {
		t.Errorf("a body with too many values: %v, truncated %v", err, p.Truncated)
	}
}

func TestUnescape(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{`a\nb`, "a\nb"}, {`\u00e9\u0041`, "éA"}, {`\ud83d\ude00`, "😀"}, {`\ud83d`, "\uFFFD"}, {`\ude00\ud83dx`, "\uFFFD\uFFFDx"},
		{`\x\u00g0`, `\x\u00g0`}, {`a\`, "a"}, {`a\u12`, "a"}, {"\xff\xfe", "\xff\xfe"}, {`\\u0041`, `\u0041`},
	} {
		if got := string(appendUnescaped(nil, []byte(tt.raw))); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.raw, got, tt.want)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, body := range scanCases {
		f.Add([]byte(body))
	}
	f.Fuzz(checkScan)
}

func FuzzUnescape(f *testing.F) {
	f.Add(`a\u00e9\ud83d\ude00\n`)
	f.Fuzz(func(t *testing.T, raw string) {
		got := appendUnescaped(nil, []byte(raw))
		var want string
		if json.Unmarshal([]byte(`"`+raw+`"`), &want) != nil {
			return
		}
		if toValid(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if utf8.ValidString(raw) && !utf8.Valid(got) {
			t.Errorf("%q became invalid UTF-8", raw)
		}
	})
}
