package health

import (
	"encoding/json"
	"time"
)

// reportFacts is what a report says beside its quantities, in JSON.
type reportFacts struct {
	At            time.Time `json:"at"`
	Engine        string    `json:"engine"`
	Restarted     bool      `json:"restarted"`
	Sleeping      bool      `json:"sleeping"`
	PrefixCaching string    `json:"prefix_caching"`
	SlotsAssumed  bool      `json:"slots_assumed"`
	PrivateSlots  bool      `json:"private_slots"`
}

// MarshalJSON leaves out what is not known, as JSON has no NaN.
func (r Report) MarshalJSON() ([]byte, error) {
	m := map[string]any{
		"at": r.At, "engine": r.Engine, "restarted": r.Restarted, "sleeping": r.Sleeping,
		"prefix_caching": r.PrefixCaching.String(), "slots_assumed": r.SlotsAssumed,
		"private_slots": r.PrivateSlots,
	}
	for i, q := range r.quantities() {
		if Known(*q) {
			m[quantityNames[i]] = *q
		}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Report) UnmarshalJSON(text []byte) error {
	var facts reportFacts
	if err := json.Unmarshal(text, &facts); err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*r = unknown()
	for i, q := range r.quantities() {
		if number, told := all[quantityNames[i]].(float64); told {
			*q = number
		}
	}
	r.At, r.Engine, r.Restarted, r.Sleeping = facts.At, facts.Engine, facts.Restarted, facts.Sleeping
	r.SlotsAssumed, r.PrivateSlots = facts.SlotsAssumed, facts.PrivateSlots
	r.PrefixCaching = settingOf(facts.PrefixCaching)
	return nil
}

func settingOf(word string) Setting {
	for _, s := range []Setting{Off, On} {
		if s.String() == word {
			return s
		}
	}
	return Unknown
}
