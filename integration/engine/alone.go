package engine

import "time"

// Alone is how long a request takes on a replica that has nothing else to do and
// holds so many tokens of its prompt: until its first token and until its end.
func (p *Profile) Alone(cached, prompt, output int) (first, end time.Duration) {
	for computed := cached; computed < prompt; {
		n := min(prompt-computed, p.TokenBudget)
		if prompt-computed == 1 { // one token is computed as in decoding
			first += p.stepTime(load{decoding: 1, kv: computed + 1})
		} else {
			first += p.stepTime(load{prefill: n, attention: float64(n) * (float64(computed) + float64(n)/2)})
		}
		computed += n
	}
	return first, first + p.decodeTime(output-1, 1, prompt+1)
}
