package selection

import (
	"math"
	"testing"
	"time"
)

// newPrivateFleet is a fleet with a replica that reports so many private slots.
func newPrivateFleet(slots float64) *privateFleet {
	f := &privateFleet{Fleet: newTestFleet(), replicas: addresses(1)}
	f.report(func(r *Report) { r.PrivateSlots, r.Slots = true, slots })
	return f
}

type privateFleet struct {
	*Fleet
	replicas []string
	now      time.Time
}

// report lets the replica say no more than what change sets.
func (f *privateFleet) report(change func(*Report)) {
	nan := math.NaN()
	report := &Report{Running: nan, Waiting: nan, CapacityTokens: nan, Slots: nan, PrefixQueries: nan, PrefixHits: nan}
	change(report)
	f.Report(f.now, f.replicas[0], report)
}

func (f *privateFleet) begin(request *Request) *Booking {
	f.now = f.now.Add(time.Second)
	b := f.Place(f.now, request, f.replicas)
	b.FirstToken(f.now)
	return b
}

func (f *privateFleet) serve(requests ...*Request) {
	for _, request := range requests {
		f.begin(request).End(f.now, Usage{Output: 10})
	}
}

// held is what the replica is said to hold of a prompt.
func (f *privateFleet) held(request *Request) Match {
	return f.Explain(f.now, request, f.replicas)[0].Held
}

func sure(tokens uint32) Match { return Match{tokens, tokens, tokens, tokens} }

// extended is a prompt that begins like chat(seed, shared) and goes on alone.
func extended(seed uint64, shared, tokens int) *Request {
	request := chat(seed, tokens)
	for i := range request.Blocks {
		if int(request.Blocks[i].Tokens) > shared {
			request.Blocks[i].Key += 1 << 48
		}
	}
	return request
}

func (f *privateFleet) expect(t *testing.T, what string, request *Request, want Match) {
	t.Helper()
	if got := f.held(request); got != want {
		t.Errorf("%s: %+v is promised, want %+v", what, got, want)
	}
}

func TestBusySlotLendsNothing(t *testing.T) {
	f := newPrivateFleet(2)
	f.serve(chat(1, 1280))
	f.expect(t, "idle", chat(1, 2560), sure(1280))
	b := f.begin(chat(1, 2560))
	f.expect(t, "busy", chat(1, 2560), Match{})
	b.End(f.now, Usage{})
	f.expect(t, "idle again", chat(1, 2560), sure(2560))
}

func TestPromptTakesTheSlotReleasedLongestAgo(t *testing.T) {
	f := newPrivateFleet(2)
	f.serve(chat(1, 1280), chat(2, 1280), chat(1, 1280), chat(3, 1280))
	f.expect(t, "used again", chat(1, 1280), sure(1280))
	f.expect(t, "displaced", chat(2, 1280), Match{Ghost: 1280})
	f.expect(t, "displacing", chat(3, 1280), sure(1280))
}

func TestShortPrefixIsNotWorthASlot(t *testing.T) {
	f := newPrivateFleet(2)
	f.serve(chat(1, 12_800))
	// A tenth is not enough: it goes to the other slot, which was never used.
	f.expect(t, "a tenth", extended(1, 1280, 12_800), Match{Ghost: 0})
	f.expect(t, "more than a tenth", extended(1, 1408, 12_800), sure(1408))
	f.serve(chat(2, 12_800))
	f.expect(t, "the oldest slot", extended(1, 1280, 12_800), sure(1280))
}

func TestWaitingPromptExpectsTheMean(t *testing.T) {
	f := newPrivateFleet(2)
	first, _ := f.begin(chat(1, 1280)), f.begin(chat(2, 1280))
	f.expect(t, "two at work", chat(1, 1280), sure(640))
	f.begin(chat(1, 1280))
	f.begin(chat(1, 1280))
	f.expect(t, "two more wait", chat(1, 1280), sure(960))
	f.expect(t, "two more wait", chat(2, 1280), sure(320))
	first.End(f.now, Usage{}) // the third takes its slot
	f.expect(t, "one more waits", chat(1, 1280), sure(853))
}

func TestAnswerBelongsToTheSequence(t *testing.T) {
	f := newPrivateFleet(1)
	f.begin(chat(1, 1280)).End(f.now, Usage{Output: 300})
	turn := func(reply uint32) *Request {
		request := chat(1, 1280)
		request.Tokens = int(1280 + reply + 100)
		request.Blocks = append(request.Blocks,
			Block{Key: 1, Tokens: 1280 + reply/2, Reply: true}, Block{Key: 2, Tokens: 1280 + reply, Reply: true},
			Block{Key: 3, Tokens: 1280 + reply + 100})
		return request
	}
	f.expect(t, "the whole reply", turn(300), sure(1580))
	f.expect(t, "a reply that counts less", turn(200), sure(1480))
	f.expect(t, "a reply that counts more", turn(400), sure(1580))
	f.expect(t, "another question", extended(1, 1280, 2560), sure(1280))
	f.begin(turn(300)).End(f.now, Usage{})
	f.expect(t, "the next turn", turn(300), sure(1680))
}

func TestEndOfPrivateBooking(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(b *Booking, now time.Time)
		held Match // of the prompt before
		then Match // of the prompt itself
	}{
		"answered": {func(b *Booking, now time.Time) { b.End(now, Usage{}) }, Match{Ghost: 1280}, sure(1280)},
		"cancelled": {func(b *Booking, now time.Time) {
			b.FirstToken(now)
			b.Cancel(now, Usage{})
		}, Match{Ghost: 1280}, sure(1280)},
		"cancelled before": {func(b *Booking, now time.Time) { b.Cancel(now, Usage{}) }, sure(1280), Match{}},
		"refused":          {func(b *Booking, now time.Time) { b.Fail(now, FailureModel) }, sure(1280), Match{}},
		"lost": {
			func(b *Booking, now time.Time) { b.Fail(now, FailureReplica) },
			Match{Maybe: 1280, Ghost: 1280}, Match{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPrivateFleet(1)
			f.serve(chat(1, 1280))
			b := f.Place(f.now, chat(2, 1280), f.replicas)
			waits := f.Place(f.now, chat(3, 1280), f.replicas)
			waits.Fail(f.now, FailureRequest)
			tt.end(b, f.now)
			f.expect(t, "before", chat(1, 1280), tt.held)
			f.expect(t, "itself", chat(2, 1280), tt.then)
			f.expect(t, "gone while it waited", chat(3, 1280), Match{})
		})
	}
}

func TestPrivateSlotsAreLost(t *testing.T) {
	for name, lose := range map[string]func(f *privateFleet){
		"forgotten":   func(f *privateFleet) { f.Forget(f.replicas[0]) },
		"restarted":   func(f *privateFleet) { f.report(func(r *Report) { r.PrivateSlots, r.Restarted = true, true }) },
		"asleep":      func(f *privateFleet) { f.report(func(r *Report) { r.PrivateSlots, r.Sleeping = true, true }) },
		"other slots": func(f *privateFleet) { f.report(func(r *Report) { r.PrivateSlots, r.Slots = true, 3 }) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newPrivateFleet(1)
			f.serve(chat(1, 1280), chat(2, 1280))
			lose(f)
			f.expect(t, "in the slot", chat(2, 1280), Match{})
			f.expect(t, "displaced", chat(1, 1280), Match{})
			f.serve(chat(2, 1280))
			f.expect(t, "served since", chat(2, 1280), sure(1280))
		})
	}
}

func TestDoubtOfPrivateSlots(t *testing.T) {
	for name, tt := range map[string]struct {
		cached int
		want   Match // of what else was there before the doubt
	}{
		"confirmed": {1280, sure(1280)},
		"lost":      {0, Match{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPrivateFleet(2)
			f.serve(chat(1, 1280), chat(2, 1280))
			f.Distrust(f.replicas[0])
			f.expect(t, "in doubt", chat(1, 1280), Match{Maybe: 1280, Ghost: 1280})
			f.begin(chat(2, 2560)).End(f.now, Usage{Prompt: 2560, Cached: tt.cached, Checked: true})
			f.expect(t, "served since", chat(2, 2560), sure(2560))
			f.expect(t, "settled", chat(1, 1280), tt.want)
		})
	}
}

// TestHostCacheIsLearned lets an engine find what has left its only slot.
func TestHostCacheIsLearned(t *testing.T) {
	for name, tt := range map[string]struct {
		cached   int
		from, to int
	}{
		"kept": {1280, 1000, 1280},
		"gone": {0, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPrivateFleet(1)
			var last *Booking
			for i := range uint64(80) {
				last = f.begin(chat(1+i%2, 1280))
				last.End(f.now, Usage{Prompt: 1280, Cached: min(tt.cached, int(1280*i)), Checked: true})
			}
			if got := last.Estimate.Matched; got < tt.from || got > tt.to {
				t.Errorf("%d tokens are expected of a displaced sequence, want %d to %d", got, tt.from, tt.to)
			}
		})
	}
}

func TestDisplacedSequenceIsBroughtBackOnce(t *testing.T) {
	f := newPrivateFleet(2)
	f.serve(chat(1, 1280), chat(2, 1280), chat(3, 1280))
	f.expect(t, "displaced", chat(1, 1280), Match{Ghost: 1280})
	f.begin(chat(1, 1280))
	f.expect(t, "in use", chat(1, 1280), Match{})
}

func TestDisplacedSequencesAreBounded(t *testing.T) {
	f := newPrivateFleet(1)
	for i := range uint64(maxDisplaced + 2) {
		f.serve(chat(1+i, 1280))
	}
	f.expect(t, "one too many", chat(1, 1280), Match{})
	f.expect(t, "the oldest", chat(2, 1280), Match{Ghost: 1280})
}

// TestOtherSequencesStayDisplaced lets prompts come that displace nothing new.
func TestOtherSequencesStayDisplaced(t *testing.T) {
	for name, next := range map[string]func(f *privateFleet){
		"cancelled before the prefill": func(f *privateFleet) {
			f.Place(f.now, chat(3, 1280), f.replicas).Cancel(f.now, Usage{})
		},
		"not readable": func(f *privateFleet) { f.serve(&Request{Tokens: 1000}) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newPrivateFleet(1)
			f.serve(chat(1, 1280), chat(2, 1280))
			for range maxDisplaced + 2 {
				next(f)
			}
			f.expect(t, "displaced before", chat(1, 1280), Match{Ghost: 1280})
		})
	}
}

func TestNoNumberOfSlotsIsTooStrange(t *testing.T) {
	for _, slots := range []float64{-1, 0, math.Inf(-1), math.Inf(1)} {
		f := newPrivateFleet(slots)
		f.serve(chat(1, 1280))
		f.expect(t, "left to the index", chat(1, 1280), sure(1280))
	}
}

// TestPrivateSlotsTeachNoCapacity misses what the index would promise.
func TestPrivateSlotsTeachNoCapacity(t *testing.T) {
	f := newPrivateFleet(1)
	f.report(func(r *Report) { r.PrivateSlots, r.CapacityTokens = true, 16_384 })
	for i := range uint64(200) {
		f.begin(chat(1+i%4, 2560)).End(f.now, Usage{Prompt: 2560, Checked: true})
	}
	s := f.Status(f.now)[0]
	if s.Capacity != 16_384 || s.Source != "reported" || s.Doubted {
		t.Errorf("capacity %d is %s, doubted %t", s.Capacity, s.Source, s.Doubted)
	}
	if s.Resident != 2560 {
		t.Errorf("%d tokens are resident, want those of one prompt", s.Resident)
	}
}

// TestMissOfPrivateSlotsIsNoLoss: a slot may go to another prompt unseen, and
// says nothing of the others.
func TestMissOfPrivateSlotsIsNoLoss(t *testing.T) {
	for name, checked := range map[string]bool{"answers tell": true, "counters tell": false} {
		t.Run(name, func(t *testing.T) {
			f := newPrivateFleet(2)
			for range 10 {
				f.begin(chat(1, 2560)).End(f.now, Usage{Prompt: 2560, Checked: checked})
				queries := 2560 * f.Status(f.now)[0].Booked
				f.report(func(r *Report) {
					r.PrivateSlots, r.PrefixQueries, r.PrefixHits = true, float64(queries), 0
				})
				if f.Status(f.now)[0].Doubted {
					t.Fatal("the replica is taken to have lost its cache")
				}
			}
		})
	}
}

func TestCapacityLearnedBeforeSlotsAreKnown(t *testing.T) {
	f := newPrivateFleet(math.NaN())
	f.Fleet.replicas[f.replicas[0]].learned = 1024
	f.report(func(r *Report) { r.PrivateSlots, r.Slots = true, 4 })
	if s := f.Status(f.now)[0]; s.Source != "assumed" || s.Capacity != DefaultCapacity {
		t.Errorf("capacity %d is %s, want it assumed", s.Capacity, s.Source)
	}
}

// TestIndexWithoutPrivateSlots promises what the index holds where slots are not
// known to be private, or not how many.
func TestIndexWithoutPrivateSlots(t *testing.T) {
	for name, change := range map[string]func(*Report){
		"not private": func(r *Report) { r.Slots = 1 },
		"untold":      func(r *Report) { r.PrivateSlots = true },
		"too many":    func(r *Report) { r.PrivateSlots, r.Slots = true, maxPrivateSlots+1 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newPrivateFleet(math.NaN())
			f.report(change)
			f.serve(chat(1, 1280), chat(2, 1280), chat(3, 1280))
			f.expect(t, "all", chat(1, 1280), sure(1280))
		})
	}
	t.Run("no longer private", func(t *testing.T) {
		f := newPrivateFleet(1)
		f.serve(chat(1, 1280), chat(2, 1280))
		f.report(func(r *Report) { r.Restarted = true })
		f.serve(chat(1, 1280), chat(2, 1280))
		f.expect(t, "all", chat(1, 1280), sure(1280))
	})
}

func TestLightWorkTakesNoSlot(t *testing.T) {
	f := newPrivateFleet(1)
	f.serve(chat(1, 1280))
	f.begin(&Request{Work: Light})
	f.expect(t, "idle", chat(1, 1280), sure(1280))
}
