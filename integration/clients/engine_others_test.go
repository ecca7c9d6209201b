package clients

import "io"

// message answers in Anthropic's form.
func (x *exchange) message() {
	said := object{"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0, "output_tokens": 2}
	message := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": x.body.Model, "stop_reason": "end_turn", "usage": said,
		"content": []object{{"type": "text", "text": x.digest}},
	}
	if !x.streams(false) {
		x.answer(message)
		return
	}
	begun := object{"id": "msg_1", "type": "message", "role": "assistant", "model": x.body.Model, "content": []object{}, "usage": said}
	x.events(
		object{"type": "message_start", "message": begun},
		object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}},
		object{"type": "ping"},
		object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": x.digest}},
		object{"type": "content_block_stop", "index": 0},
		object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": object{"output_tokens": 2}},
		object{"type": "message_stop"},
	)
}

func (x *exchange) countTokens() { x.answer(object{"input_tokens": len(x.digest)}) }

func (x *exchange) ollamaChat() {
	last := object{
		"model": x.body.Model, "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": "stop",
		"message": object{"role": "assistant", "content": "."}, "prompt_eval_count": 9, "eval_count": 2,
	}
	if !x.streams(true) {
		last["message"] = object{"role": "assistant", "content": x.digest + "."}
		x.answer(last)
		return
	}
	x.lines(object{"model": x.body.Model, "created_at": "2026-01-01T00:00:00Z", "message": object{"role": "assistant", "content": x.digest}}, last)
}

func (x *exchange) ollamaGenerate() {
	last := object{"model": x.body.Model, "created_at": "2026-01-01T00:00:00Z", "done": true, "response": ".", "context": []int{1, 2, 3}}
	if !x.streams(true) {
		x.answer(last)
		return
	}
	x.lines(object{"model": x.body.Model, "created_at": "2026-01-01T00:00:00Z", "response": x.digest}, last)
}

func (x *exchange) ollamaEmbed() {
	x.answer(object{"model": x.digest, "embeddings": [][]float64{{0.5, 0.25}}, "prompt_eval_count": 3})
}

func (x *exchange) ollamaPull() {
	x.lines(object{"status": "pulling " + x.digest, "total": 2, "completed": 1}, object{"status": "success"})
}

func (x *exchange) ollamaBlob() {
	x.w.WriteHeader(201)
	_, _ = io.WriteString(x.w, x.digest)
}

func (x *exchange) ollamaTags() {
	x.answer(object{"models": []object{{"name": "m:latest", "model": "m:latest", "size": 1}}})
}

func (x *exchange) ollamaShow() {
	x.answer(object{"details": object{"family": x.digest}, "modelfile": "FROM m"})
}

func (x *exchange) ollamaVersion() { x.answer(object{"version": "0.17.4"}) }
