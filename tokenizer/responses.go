package tokenizer

import "bytes"

// responses reads OpenAI's responses: tools, instructions, input. A request that
// continues a stored response brings only the new part of the input: where that comes
// to stand is not known, so it is no part of the chain.
func (r *reader) responses() {
	r.tools(r.top[fTools])
	r.system(r.top[fInstructions])
	if r.p.HasResponseID {
		r.endChain()
	}
	input := r.top[fInput]
	if r.kind(input) == kindString {
		r.header([]byte("user"))
		r.textPart(input)
		r.footer()
		return
	}
	for item := range r.elements(input) {
		r.item(item)
	}
}

// likeResponses tells a responses body from an embeddings body.
func (r *reader) likeResponses() bool {
	input := r.top[fInput]
	return r.hasAny([]field{fPreviousResponse, fConversation, fInstructions, fMaxOutput}) ||
		r.get(r.first(input), "role") != absent
}

// item writes one item of the input: a message, a call, its output.
func (r *reader) item(v value) {
	if r.get(v, "role") != absent || r.kind(v) != kindObject {
		r.message(v)
		return
	}
	var name, arguments, output value
	for key, val := range r.fields(v) {
		switch string(key) {
		case "name":
			name = val
		case "arguments", "input":
			arguments = val
		case "output":
			output = val
		}
	}
	switch typ := r.str(r.get(v, "type")); {
	case string(typ) == "reasoning": // see message
	case bytes.HasSuffix(typ, []byte("_output")):
		r.itemOutput(output)
	case name != absent:
		r.header([]byte("assistant"))
		r.call(name, arguments)
		r.footer()
		if !r.empty(output) { // of a tool that the engine called itself
			r.itemOutput(output)
		}
	default:
		r.header([]byte("assistant"))
		r.tag(tagJSON)
		r.object(v)
		r.footer()
	}
}

func (r *reader) itemOutput(output value) {
	r.header([]byte("tool"))
	r.content(output, absent)
	r.footer()
}
