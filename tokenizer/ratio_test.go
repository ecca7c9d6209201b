package tokenizer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// near reports whether a ratio is within a share of so many bytes per token.
func near(ratio float32, bytesPerToken, share float64) bool {
	return math.Abs(float64(ratio)*bytesPerToken-1) <= share
}

// sampled is the truth about a model: bytes per token, and how prompts differ.
type sampled struct {
	ascii, other float64
	share        func(*rand.Rand) float64 // of the text that is not First
	noise        float64                  // standard deviation of the logarithm
}

// teach has n prompts answered.
func (s sampled) teach(r *Ratios, rng *rand.Rand, n int) {
	for range n {
		bytes := 1000 + rng.IntN(50_000)
		other := 0
		if s.share != nil {
			other = int(s.share(rng) * float64(bytes))
		}
		tokens := float64(bytes-other) / s.ascii
		if other > 0 {
			tokens += float64(other) / s.other
		}
		tokens *= math.Exp(s.noise * rng.NormFloat64())
		r.Learn("m", Text{Bytes: bytes, Further: other}, int(tokens))
	}
}

func TestRatioIsLearned(t *testing.T) {
	even := func(rng *rand.Rand) float64 { return rng.Float64() }
	for name, test := range map[string]struct {
		sampled
		answers      int
		ascii, other float64
	}{
		"nothing yet":      {sampled{}, 0, 4, 4},
		"as usual":         {sampled{ascii: 4, noise: 0.1}, 50, 4, 4},
		"one by one":       {sampled{ascii: 3}, 10, 3, 4},
		"code":             {sampled{ascii: 2.9, noise: 0.1}, 50, 2.9, 4},
		"large vocabulary": {sampled{ascii: 4.8, noise: 0.1}, 50, 4.8, 4},
		"bytes":            {sampled{ascii: 1}, 300, 1, 4},
		"mixed scripts":    {sampled{ascii: 4.2, other: 2.4, share: even, noise: 0.05}, 300, 4.2, 2.4},
		"one script":       {sampled{ascii: 4, other: 2.5, share: func(*rand.Rand) float64 { return 0.95 }}, 50, 4, 2.5},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				var r Ratios
				test.teach(&r, rand.New(rand.NewPCG(1, seed)), test.answers)
				got := r.Of("m")
				if !near(got.First, test.ascii, 0.06) || !near(got.Further, test.other, 0.06) {
					t.Errorf("learned %.2f and %.2f bytes per token, want %.2f and %.2f", 1/got.First, 1/got.Further, test.ascii, test.other)
				}
			}
		})
	}
}

func TestRatioChangesRarely(t *testing.T) {
	var r Ratios
	rng := rand.New(rand.NewPCG(1, 1))
	truth := sampled{ascii: 3.3, noise: 0.15}
	truth.teach(&r, rng, 200)
	changes, last := 0, r.Of("m")
	for range 10_000 {
		truth.teach(&r, rng, 1)
		if now := r.Of("m"); now != last {
			changes, last = changes+1, now
		}
	}
	if changes > 20 {
		t.Errorf("the ratio changed %d times in 10,000 answers", changes)
	}
	sampled{ascii: 4.4, noise: 0.15}.teach(&r, rng, 300)
	if got := r.Of("m"); !near(got.First, 4.4, 0.06) {
		t.Errorf("after a change of the model %.2f bytes per token", 1/got.First)
	}
}

// TestOutliersHardlyCount has answers that speak of something else.
func TestOutliersHardlyCount(t *testing.T) {
	var r Ratios
	rng := rand.New(rand.NewPCG(1, 1))
	truth := sampled{ascii: 4, noise: 0.1}
	for range 300 {
		truth.teach(&r, rng, 19)
		r.Learn("m", Text{Bytes: 10_000}, 9_000) // one in twenty, 3.6 times too many
	}
	if got := r.Of("m"); !near(got.First, 4, 0.06) {
		t.Errorf("%.2f bytes per token", 1/got.First)
	}
}

func TestUnbelievableAnswersAreIgnored(t *testing.T) {
	var r Ratios
	usual := r.Of("m")
	for name, test := range map[string]struct {
		text   Text
		tokens int
	}{
		"nothing":        {Text{}, 100},
		"short":          {Text{Bytes: minText - 1}, 100},
		"no tokens":      {Text{Bytes: 4000}, 0},
		"too few":        {Text{Bytes: 4000}, 300},
		"too many":       {Text{Bytes: 4000}, 6000},
		"negative":       {Text{Bytes: 4000}, -5},
		"mostly images":  {Text{Bytes: 4000, Tokens: 768}, 1768},
		"only token ids": {Text{Tokens: 1000}, 1000},
	} {
		for range 100 {
			r.Learn("m", test.text, test.tokens)
		}
		if got := r.Of("m"); got != usual {
			t.Errorf("%s: learned %+v", name, got)
		}
	}
	// What is just believed leads to the bounds, not beyond.
	for range 1000 {
		r.Learn("m", Text{Bytes: 4000, Further: 2000}, 4900)
	}
	if got := r.Of("m"); got.First > 1./minBytes || got.Further > 1./minBytes {
		t.Errorf("learned %+v", got)
	}
}

func TestModelsLearnApart(t *testing.T) {
	var r Ratios
	for range 100 {
		r.Learn("a", Text{Bytes: 3000}, 1000)
		r.Learn("b", Text{Bytes: 5000}, 1000)
	}
	if a, b := r.Of("a"), r.Of("b"); !near(a.First, 3, 0.03) || !near(b.First, 5, 0.03) {
		t.Errorf("learned %+v and %+v", a, b)
	}
}

func TestTokensNeverDecrease(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		ratio := Ratio{First: 1 / (1 + 7*rng.Float32()), Further: 1 / (1 + 7*rng.Float32())}
		var text Text
		last := 0
		for range 1000 {
			n := rng.IntN(200)
			text.add(Text{Bytes: n, Further: rng.IntN(n + 1), Tokens: rng.IntN(3)}, 1)
			now := ratio.Tokens(text)
			if now < last {
				t.Fatalf("%+v of %+v is %d tokens, less than %d", ratio, text, now, last)
			}
			last = now
		}
	}
}

func TestRatiosAreSafeForConcurrentUse(t *testing.T) {
	var r Ratios
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 1000 {
				r.Learn(fmt.Sprint(i%7), Text{Bytes: 4000 + worker, Further: i}, 1000)
				if ratio := r.Of(fmt.Sprint(i % 7)); ratio.First < 1./maxBytes || ratio.Further < 1./maxFurther || max(ratio.First, ratio.Further) > 1./minBytes {
					t.Errorf("ratio is %+v", ratio)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkRatio(b *testing.B) {
	var r Ratios
	r.Learn("m", Text{Bytes: 4000}, 1200)
	b.Run("of", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Of("m")
		}
	})
	b.Run("learn", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Learn("m", Text{Bytes: 4000, Further: 100}, 1200)
		}
	})
}
