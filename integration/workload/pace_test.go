package workload

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// counts draws arrivals over ten minutes and counts them by the minute.
func counts(p Pace, rate float64) (minutes [10]float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	p.arrivals(rng, rate, 10*time.Minute, func(at time.Duration) { minutes[at/time.Minute]++ })
	return minutes
}

func TestPaces(t *testing.T) {
	steady := [10]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	var burst, day, jump [10]float64
	for i := range 10 {
		burst[i] = 0.5 // (1 + 0.2*(6-1))*0.5 = 1
		day[i] = 0.2 + 0.8*(1-math.Cos(2*math.Pi*(float64(i)+0.5)/10))/2
		jump[i] = 0.3
	}
	burst[4], burst[9] = 3, 3
	jump[4], jump[5] = 1, 1
	for _, c := range []struct {
		name string
		pace Pace
		want [10]float64
	}{
		{"steady", Pace{}, steady},
		{"bursts", Bursts(5*time.Minute, time.Minute, 6), burst},
		{"diurnal", Diurnal(10*time.Minute, 0.2), day},
		{"jump", Jump(4*time.Minute, 6*time.Minute, 0.3), jump},
	} {
		for i, n := range counts(c.pace, 50) {
			want := c.want[i] * 50 * 60
			if math.Abs(n-want) > 5*math.Sqrt(want) {
				t.Errorf("%s: %v arrivals in minute %d, want about %.0f", c.name, n, i, want)
			}
		}
	}
}

func TestTenantsDiffer(t *testing.T) {
	tenants := Tenants{
		Rate: 20, Duration: 20 * time.Minute, Tenants: 30, Skew: 0.9, Prompts: 3,
		PromptTokens: [2]int{200, 10_000}, OwnTokens: [2]int{50, 4000}, AnswerTokens: [2]int{30, 800},
		MaxTurns: 8, Think: 20 * time.Second, Active: 0.4, Period: 2 * time.Minute,
	}
	w := tenants.Workload(1)
	if !reflect.DeepEqual(w, tenants.Workload(1)) {
		t.Error("the same seed gives another workload")
	}
	if rate := float64(w.Requests()) / tenants.Duration.Seconds(); rate < 15 || rate > 25 {
		t.Errorf("%.1f requests/s, want about 20", rate)
	}
	sessions := map[Segment]int{}
	last := time.Duration(0)
	for _, s := range w.Sessions {
		if len(s.Shared) != 1 || len(s.Turns) > 8 || s.Start < last || s.Start >= tenants.Duration {
			t.Fatalf("session %+v after %v", s, last)
		}
		last = s.Start
		sessions[s.Shared[0]]++
	}
	if len(sessions) < 30 || len(sessions) > 90 {
		t.Errorf("%d system prompts for 30 tenants", len(sessions))
	}
	low, high := math.MaxInt, 0
	for prompt := range sessions {
		low, high = min(low, prompt.Tokens), max(high, prompt.Tokens)
	}
	if low > 600 || high < 4000 {
		t.Errorf("system prompts of %d to %d tokens", low, high)
	}
}

func TestTenantsFallSilent(t *testing.T) {
	c := tenant{quiet: []time.Duration{5, 8, 20, 21}}
	for at, want := range map[time.Duration]bool{0: true, 4: true, 5: false, 7: false, 8: true, 19: true, 20: false, 21: true, 99: true} {
		if c.sends(at) != want {
			t.Errorf("sends at %d: %v", at, !want)
		}
	}
}
