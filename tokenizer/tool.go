package tokenizer

// tools writes the definitions of tools, which templates render before everything else.
// Engines keep the order of keys inside the parameters, but not around them.
func (r *reader) tools(list value) {
	if r.kind(list) != kindArray {
		return
	}
	for t := range r.elements(list) {
		r.tool(t)
	}
	r.messageEnd()
}

func (r *reader) tool(v value) {
	fn := r.get(v, "function")
	if r.kind(fn) != kindObject {
		fn = v
	}
	var name, description, schema value
	for key, val := range r.fields(fn) {
		switch string(key) {
		case "name":
			name = val
		case "description":
			description = val
		case "parameters", "input_schema":
			schema = val
		}
	}
	r.text(tagTool, name)
	if schema == absent { // a tool of the engine's own, or of a new kind
		r.tag(tagJSON)
		r.object(v)
		return
	}
	if !r.empty(description) {
		r.text(tagDetail, description)
	}
	r.tag(tagSchema)
	r.json(r.raw(schema))
	r.toolExtras(fn)
}

// toolExtras writes what engines hand on to the template without knowing it, such as
// strict. False is the same as absent.
func (r *reader) toolExtras(fn value) {
	for key, val := range r.fields(fn) {
		switch string(key) {
		case "type", "name", "description", "parameters", "input_schema", "cache_control":
			continue
		}
		if r.empty(val) || r.kind(val) == kindBool && !r.isTrue(val) {
			continue
		}
		r.tag(tagJSON)
		r.quoted(r.raw(val - 1))
		r.value(val)
	}
}
