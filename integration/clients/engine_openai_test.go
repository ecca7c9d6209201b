package clients

import (
	"fmt"
	"io"
	"net/http"
)

var usage = object{
	"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, "prompt_tokens_details": object{"cached_tokens": 4},
}

func (x *exchange) chat() {
	head := object{"id": "chatcmpl-1", "created": 1, "model": x.body.Model}
	if !x.streams(false) {
		head["object"], head["usage"] = "chat.completion", usage
		head["choices"] = []object{{"index": 0, "finish_reason": "stop", "message": object{"role": "assistant", "content": x.digest}}}
		x.answer(head)
		return
	}
	chunk := func(choices []object, usage any) object {
		return object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": x.body.Model, "choices": choices, "usage": usage}
	}
	x.events(
		chunk([]object{{"index": 0, "delta": object{"role": "assistant", "content": ""}}}, nil),
		chunk([]object{{"index": 0, "delta": object{"content": x.digest}}}, nil),
		chunk([]object{{"index": 0, "delta": object{"tool_calls": []object{
			{"index": 0, "id": "call_1", "type": "function", "function": object{"name": "f", "arguments": "{}"}},
		}}}}, nil),
		chunk([]object{{"index": 0, "delta": object{}, "finish_reason": "tool_calls"}}, nil),
		chunk([]object{}, usage),
	)
	_, _ = io.WriteString(x.w, "data: [DONE]\n\n")
}

func (x *exchange) completion() {
	part := func(text string, reason any) object {
		return object{
			"id": "cmpl-1", "object": "text_completion", "created": 1, "model": x.body.Model,
			"choices": []object{{"index": 0, "text": text, "finish_reason": reason}}, "usage": usage,
		}
	}
	if !x.streams(false) {
		x.answer(part(x.digest, "stop"))
		return
	}
	x.events(part(x.digest, nil), part("", "stop"))
	_, _ = io.WriteString(x.w, "data: [DONE]\n\n")
}

func (x *exchange) embeddings() {
	x.answer(object{
		"object": "list", "model": x.digest, "usage": object{"prompt_tokens": 3, "total_tokens": 3},
		"data": []object{{"object": "embedding", "index": 0, "embedding": []float64{0.5, 0.25}}},
	})
}

func (x *exchange) transcription() { x.answer(object{"text": x.digest}) }

func (x *exchange) models() {
	x.answer(object{"object": "list", "data": []object{{"id": "m", "object": "model", "created": 1, "owned_by": "test"}}})
}

// respond makes a response, kept under an id that is the same wherever it is made.
func (x *exchange) respond() {
	x.mu.Lock()
	if _, ok := x.kept[x.body.Previous]; !ok && x.body.Previous != "" {
		x.mu.Unlock()
		x.fail(http.StatusNotFound, "no response "+x.body.Previous)
		return
	}
	id := "resp_" + x.digest
	x.kept[id] = x.digest
	x.mu.Unlock()
	whole := responseObject(id, x.digest)
	if !x.streams(false) {
		x.answer(whole)
		return
	}
	begun := responseObject(id, "")
	begun["status"], begun["output"] = "in_progress", []object{}
	x.events(
		object{"type": "response.created", "sequence_number": 0, "response": begun},
		object{"type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": x.digest},
		object{"type": "response.completed", "sequence_number": 2, "response": whole},
	)
}

func responseObject(id, text string) object {
	return object{
		"id": id, "object": "response", "created_at": 1, "status": "completed", "model": "m",
		"output": []object{{
			"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": text, "annotations": []object{}}},
		}},
		"usage": object{"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "input_tokens_details": object{"cached_tokens": 4}},
	}
}

// response retrieves, cancels or deletes.
func (x *exchange) response() {
	id := x.r.PathValue("id")
	x.mu.Lock()
	text, ok := x.kept[id]
	if x.r.Method == http.MethodDelete {
		delete(x.kept, id)
	}
	x.mu.Unlock()
	if !ok {
		x.fail(http.StatusNotFound, fmt.Sprintf("no response %s", id))
		return
	}
	x.answer(responseObject(id, text))
}

func (x *exchange) items() {
	x.mu.Lock()
	_, ok := x.kept[x.r.PathValue("id")]
	x.mu.Unlock()
	if !ok {
		x.fail(http.StatusNotFound, "no response")
		return
	}
	x.answer(object{"object": "list", "has_more": false, "data": []object{{"id": "msg_0", "type": "message", "role": "user", "content": []object{}}}})
}
