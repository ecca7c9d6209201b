package selection

// defaultOutput is the assumed length of an answer in tokens until a model has answered.
const defaultOutput = 256

// outputs learns how long answers are, per model. Models share cells by hash,
// so memory is fixed whatever names clients send. Owned by a Fleet and guarded
// by its lock.
type outputs [modelCells]float64

// expect is the expected length of the answer to a request, in tokens.
func (o *outputs) expect(request *Request) int {
	length := defaultOutput
	if mean := o[modelCell(request.Model)]; mean > 0 {
		length = int(mean + 0.5)
	}
	if request.Output > 0 {
		length = min(length, request.Output)
	}
	return length
}

// answer is how many tokens a request is expected to generate.
func (f *Fleet) answer(request *Request) int {
	if request.Work != Generate {
		return 0
	}
	return f.outputs.expect(request)
}

// learn moves the mean by a sixteenth of the difference.
func (o *outputs) learn(model string, tokens int) {
	if tokens <= 0 {
		return
	}
	cell := &o[modelCell(model)]
	if *cell == 0 {
		*cell = defaultOutput
	}
	*cell += (float64(tokens) - *cell) / 16
}
