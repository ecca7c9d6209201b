package module

import (
	"net/http"
	"strings"
	"testing"
)

func sse(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

// engineAnswers has an answer of each API and engine, cut down to what matters;
// the texts follow the engines' own source and documentation.
var engineAnswers = map[string]struct {
	header http.Header
	answer string
	want   usage
	// contentAt is the number of leading events without content, -1 if the
	// answer is not streamed or has none.
	contentAt int
}{
	"openai chat, reasoning": {
		header: answerHeader(".txt"),
		answer: sse(
			`{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[]},"logprobs":null}],"usage":null}`,
			`{"id":"c","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"Hm"}}]}`,
			`{"id":"c","choices":[{"index":0,"delta":{"content":"Yes"}}]}`,
			`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`[DONE]`,
		),
		want:      usage{outputTokens: 2, outputCounted: true, responseID: "c"},
		contentAt: 1,
	},
	"openai chat, tool call": {
		header: answerHeader(".txt"),
		answer: sse(
			`{"choices":[{"delta":{"role":"assistant"}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]}}]}`,
			`{"choices":[],"usage":{"prompt_tokens":100,"total_tokens":105,"completion_tokens":5,"prompt_tokens_details":null}}`,
		),
		want:      usage{promptTokens: 100, outputTokens: 5},
		contentAt: 1,
	},
	"openai completions": {
		header: answerHeader(".txt"),
		answer: sse(
			`{"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":" foo","logprobs":{"tokens":["x"]}}]}`,
			`{"id":"cmpl-1","choices":[{"index":0,"text":"","finish_reason":"length"}]}`,
		),
		want:      usage{outputTokens: 1, outputCounted: true, responseID: "cmpl-1"},
		contentAt: 0,
	},
	"vllm, usage on every chunk": {
		header: answerHeader(".txt"),
		answer: sse(
			`{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":8,"total_tokens":8,"completion_tokens":0}}`,
			`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":8,"total_tokens":9,"completion_tokens":1}}`,
			`{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":8,"total_tokens":12,"completion_tokens":4}}`,
		),
		want:      usage{promptTokens: 8, outputTokens: 4},
		contentAt: 1,
	},
	"openai responses": {
		header: answerHeader(".txt"),
		answer: "event: response.created\n" + sse(
			`{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","text":{"format":{"type":"text"}},"usage":null}}`,
		) + "event: response.output_item.added\n" + sse(
			`{"type":"response.output_item.added","item":{"id":"msg_1","content":[],"text":"no"}}`,
		) + "event: response.output_text.delta\n" + sse(
			`{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hi","logprobs":[]}`,
		) + "event: response.completed\n" + sse(
			`{"type":"response.completed","response":{"id":"resp_1","output":[{"content":[{"type":"output_text","text":"Hi"}]}],`+
				`"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":32},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3}}}}`,
		),
		want:      usage{promptTokens: 50, cachedTokens: 32, cachedKnown: true, outputTokens: 7, responseID: "resp_1"},
		contentAt: 2,
	},
	"openai responses, whole": {
		header: answerHeader(".json"),
		answer: `{"id":"resp_2","object":"response","output":[{"id":"msg_1","content":[{"text":"\"usage\":{\"input_tokens\":9}"}]}],` +
			`"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":0},"output_tokens":7}}`,
		want:      usage{promptTokens: 50, cachedKnown: true, outputTokens: 7, responseID: "resp_2"},
		contentAt: -1,
	},
	"anthropic": {
		header: answerHeader(".txt"),
		answer: "event: message_start\n" + sse(
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],`+
				`"usage":{"input_tokens":25,"cache_creation_input_tokens":10,"cache_read_input_tokens":1000,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type": "ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"zzz"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`,
			`{"type":"message_stop"}`,
		),
		want:      usage{promptTokens: 1035, cachedTokens: 1000, cachedKnown: true, outputTokens: 15},
		contentAt: 3,
	},
	"anthropic, tool use": {
		header: answerHeader(".txt"),
		answer: sse(
			`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}`,
			`{"type":"message_delta","delta":{},"usage":{"input_tokens":30,"output_tokens":9,"cache_read_input_tokens":null}}`,
		),
		want:      usage{promptTokens: 30, outputTokens: 9},
		contentAt: 1,
	},
	"anthropic, whole": {
		header: answerHeader(".json"),
		answer: `{"id":"msg_9","type":"message","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":12,"output_tokens":6}}`,
		want:   usage{promptTokens: 12, outputTokens: 6, responseID: "msg_9"}, contentAt: -1,
	},
	"sglang, native stream": {
		header: answerHeader(".txt"),
		answer: sse(
			`{"text":"","output_ids":[],"meta_info":{"id":"a","prompt_tokens":64,"completion_tokens":0,"cached_tokens":48}}`,
			`{"text":" The","output_ids":[1],"meta_info":{"id":"a","prompt_tokens":64,"completion_tokens":1,"cached_tokens":48}}`,
			`{"text":" The end","output_ids":[1,2],"meta_info":{"id":"a","finish_reason":{"type":"stop"},"prompt_tokens":64,"completion_tokens":2,"cached_tokens":48}}`,
			`[DONE]`,
		),
		want:      usage{promptTokens: 64, cachedTokens: 48, cachedKnown: true, outputTokens: 2},
		contentAt: 1,
	},
	"sglang, batch": {
		header: answerHeader(".json"),
		answer: `[{"text":"a","meta_info":{"prompt_tokens":64,"completion_tokens":3,"cached_tokens":0}}]`,
		want:   usage{promptTokens: 64, cachedKnown: true, outputTokens: 3}, contentAt: -1,
	},
	"llama.cpp, native stream": {
		header: answerHeader(".txt"),
		answer: sse(
			`{"index":0,"content":" The","tokens":[791],"stop":false,"id_slot":0,"tokens_predicted":1,"tokens_evaluated":9}`,
			`{"index":0,"content":"","stop":true,"tokens_predicted":1,"tokens_evaluated":9,"tokens_cached":9,`+
				`"timings":{"cache_n":5,"prompt_n":4,"prompt_ms":20.5,"predicted_n":1,"predicted_ms":10}}`,
		),
		want: usage{
			promptTokens: 9, cachedTokens: 5, cachedKnown: true, outputTokens: 1, prefillSeconds: 0.0205, decodeSeconds: 0.01,
		},
		contentAt: 0,
	},
	"tgi, stream": {
		header: merged(answerHeader(".txt"), http.Header{"X-Prompt-Tokens": {"17"}, "X-Queue-Time": {"250"}}),
		answer: sse(
			`{"index":1,"token":{"id":1,"text":" foo","logprob":-0.1,"special":false},"generated_text":null,"details":null}`,
			`{"index":2,"token":{"id":2,"text":" bar","logprob":-0.1,"special":false},"generated_text":" foo bar",`+
				`"details":{"finish_reason":"length","generated_tokens":2,"seed":null,"input_length":17}}`,
		),
		want:      usage{promptTokens: 17, outputTokens: 2, queueSeconds: 0.25},
		contentAt: 0,
	},
	"ollama chat": {
		header: answerHeader(".ndjson"),
		answer: `{"model":"m","created_at":"t","message":{"role":"assistant","content":""},"done":false}` + "\n" +
			`{"model":"m","created_at":"t","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}` + "\n" +
			`{"model":"m","created_at":"t","message":{"role":"assistant","content":"Hi"},"done":false}` + "\n" +
			`{"model":"m","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":4935886791,` +
			`"load_duration":534986708,"prompt_eval_count":26,"prompt_eval_duration":107345000,"eval_count":298,"eval_duration":4289432000}` + "\n",
		want: usage{
			promptTokens: 26, outputTokens: 298, prefillSeconds: 0.107345, decodeSeconds: 4.289432, loadSeconds: 0.534986708,
		},
		contentAt: 1,
	},
	"ollama generate": {
		header: answerHeader(".ndjson"),
		answer: `{"model":"m","response":"The","done":false}` + "\n" + `{"model":"m","response":"","done":true,"eval_count":1}`,
		want:   usage{outputTokens: 1}, contentAt: 0,
	},
	"embeddings": {
		header:    answerHeader(".json"),
		answer:    `{"object":"list","data":[{"embedding":[0.1,-2e-3],"index":0}],"usage":{"prompt_tokens":8,"total_tokens":8}}`,
		want:      usage{promptTokens: 8},
		contentAt: -1,
	},
	"error": {
		header:    answerHeader(".json"),
		answer:    `{"error":{"message":"no","usage":{"prompt_tokens":3}}}`,
		contentAt: -1,
	},
	"not compressed after all": {
		header:    merged(answerHeader(".json"), http.Header{"Content-Encoding": {"gzip"}}),
		answer:    `{"usage":{"prompt_tokens":8}}`,
		contentAt: -1,
	},
	"binary": {
		header: http.Header{"Content-Type": {"audio/wav"}}, answer: `{"usage":{"prompt_tokens":8}}`, contentAt: -1,
	},
}

func merged(a, b http.Header) http.Header {
	for name, values := range b {
		a[name] = values
	}
	return a
}

func TestScanEngineAnswers(t *testing.T) {
	for name, c := range engineAnswers {
		for _, lineEnd := range []string{"\n", "\r\n"} {
			answer := []byte(strings.ReplaceAll(c.answer, "\n", lineEnd))
			for _, n := range []int{len(answer), 3, 1} {
				got, ok := scanAnswer(c.header, answer, n).usage()
				if got = nanoseconds(got); got != c.want || ok != (got != usage{}) {
					t.Errorf("%s, line end %q, pieces of %d:\n got %+v\nwant %+v", name, lineEnd, n, got, c.want)
				}
			}
		}
		if got := contentAt(c.header, c.answer); got != c.contentAt {
			t.Errorf("%s: first content in event %d, want %d", name, got, c.contentAt)
		}
	}
}

// contentAt returns the number of the event with which the first token comes,
// -1 if it does not come.
func contentAt(header http.Header, answer string) int {
	s := newResponseScanner(header)
	end := "\n"
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		end = "\n\n"
	}
	for i, event := range strings.SplitAfter(answer, end) {
		s.feed([]byte(event))
		if s.firstToken() {
			return i
		}
	}
	return -1
}
