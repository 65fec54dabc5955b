package triage

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/validate"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Latest is the latest reading of each kind, by time of measurement: of each what has thresholds. Of a parameter that more
// than one kind may hold or leave out, the latest value is kept as well; [Latest.Shown] is without it. It is stored in the
// contract's latest_vitals form, and never changed in place.
type Latest struct {
	kinds  []*vitals.Reading // by the place of the kind
	shared []*vitals.Reading // by the place of the parameter
	// vouched, by the place of the parameter, is what was measured last of those whose latest value only the patient vouches for; without
	// a value where that is nothing.
	vouched []*vitals.Reading
}

// ParseLatest reads the stored form; nothing stored is no reading.
func ParseLatest(stored string) (Latest, error) {
	var latest Latest
	if stored == "" || stored == "null" {
		return latest, nil
	}
	if err := json.Unmarshal([]byte(stored), &latest); err != nil {
		return latest, fmt.Errorf("read latest vitals: %w", err)
	}
	return latest, nil
}

// With returns the latest readings after one more of an origin arrived, which may be older than what is there.
func (l Latest) With(r vitals.Reading, origin vitals.Origin) Latest {
	typed := !origin.Settles(vitals.OriginDevice)
	last := vitals.Reading{Kind: r.Kind, MeasuredAt: r.MeasuredAt}
	for _, p := range r.Kind.Definition().All {
		if p.Group == "" {
			continue
		}
		value := r.Value(p)
		*last.Slot(p) = value
		if value != nil && (typed || l.vouched != nil) {
			l.vouched = l.vouchedWith(p, *value, r.MeasuredAt, typed)
		}
		if p.Shared() && value != nil {
			alone := vitals.Reading{MeasuredAt: r.MeasuredAt}
			*alone.Slot(p) = value
			l.shared = newer(l.shared, len(vitals.Parameters), p.Place(), &alone)
		}
	}
	for _, m := range r.Kind.Definition().Marks {
		if m.Latest {
			last.Say(m, r.Says(m))
		}
	}
	l.kinds = newer(l.kinds, len(vitals.Kinds), slices.Index(vitals.Kinds, r.Kind), &last)
	return l
}

// newer returns a list with the reading at its place, unless a later one is there.
func newer(list []*vitals.Reading, places, at int, r *vitals.Reading) []*vitals.Reading {
	if list != nil && list[at] != nil && r.MeasuredAt.Before(list[at].MeasuredAt) {
		return list
	}
	changed := make([]*vitals.Reading, places)
	copy(changed, list)
	changed[at] = r
	return changed
}

// Shown is what the contract knows of the latest readings.
func (l Latest) Shown() Latest {
	l.shared, l.vouched = nil, nil
	return l
}

// MeasuredAt is the time of the newest reading of any kind; zero when there is none.
func (l Latest) MeasuredAt() (newest time.Time) {
	for _, r := range l.kinds {
		if r != nil && r.MeasuredAt.After(newest) {
			newest = r.MeasuredAt
		}
	}
	return newest
}

func (l Latest) measuredSince(since time.Time) bool {
	newest := l.MeasuredAt()
	return !newest.IsZero() && !newest.Before(since)
}

// Value is the latest value of a parameter that has thresholds, and when it was measured; nil for none.
func (l Latest) Value(p *vitals.Parameter) (*float64, time.Time) {
	list := l.kinds
	if p.Shared() {
		list = l.shared
	}
	for _, r := range list {
		if r == nil {
			continue
		}
		if value := r.Value(p); value != nil {
			return value, r.MeasuredAt
		}
	}
	return nil, time.Time{}
}

// parameters appends what counts for the score to a list. What is watched for changes counts by its gain within the window of the patient's
// rule, while it was measured since the given time: no longer are its earlier values at hand.
func (l Latest) parameters(list []parameter, t alerts.Thresholds, weighings []alerts.Weighing, since time.Time) []parameter {
	for _, p := range vitals.Watched {
		value, at := l.Value(p)
		if value == nil {
			continue
		}
		if p.Change == nil {
			list = append(list, bounded(p, *value, at, t))
			continue
		}
		if at.Before(since) {
			continue
		}
		if gain, _, known := alerts.Gain(p, *value, at, t.Change(p), weighings); known {
			list = append(list, changed(p, gain, at, t))
		}
	}
	return list
}

// encode is the stored form.
func (l Latest) encode() ([]byte, error) { return json.Marshal(l) }

// MarshalJSONTo writes the contract's form, which is what is stored. It runs for every reading.
func (l Latest) MarshalJSONTo(enc *jsontext.Encoder) error {
	w := writer{enc: enc}
	w.token(jsontext.BeginObject)
	for _, r := range l.kinds {
		if r != nil {
			d := r.Kind.Definition()
			w.reading(string(d.Kind), r, d.All, d.Marks)
		}
	}
	for place, r := range l.shared {
		if r != nil {
			w.reading(vitals.Parameters[place].Column, r, vitals.Parameters[place:place+1], nil)
		}
	}
	for place, r := range l.vouched {
		if r != nil {
			w.reading(vouchedFor+vitals.Parameters[place].Column, r, vitals.Parameters[place:place+1], nil)
		}
	}
	w.token(jsontext.EndObject)
	return w.err
}

// writer writes tokens until one fails.
type writer struct {
	enc *jsontext.Encoder
	err error
}

func (w *writer) token(token jsontext.Token) {
	if w.err == nil {
		w.err = w.enc.WriteToken(token)
	}
}

func (w *writer) reading(name string, r *vitals.Reading, parameters []*vitals.Parameter, marks []*vitals.Mark) {
	w.token(jsontext.String(name))
	w.token(jsontext.BeginObject)
	for _, p := range parameters {
		if p.Group == "" {
			continue
		}
		w.token(jsontext.String(p.Column))
		if value := r.Value(p); value != nil {
			w.token(jsontext.Float(*value))
		} else {
			w.token(jsontext.Null)
		}
	}
	for _, m := range marks {
		if !m.Latest {
			continue
		}
		w.token(jsontext.String(m.Name))
		if word := r.Says(m); word != "" {
			w.token(jsontext.String(word))
		} else {
			w.token(jsontext.Null)
		}
	}
	w.token(jsontext.String("measured_at"))
	w.token(jsontext.String(validate.FormatInstant(r.MeasuredAt)))
	w.token(jsontext.EndObject)
}

// UnmarshalJSONFrom reads what was stored. Members that mean nothing to it are left aside.
func (l *Latest) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = Latest{}
	return validate.Read(dec, func(name string) error {
		r, err := readLatest(dec)
		if err != nil || r == nil {
			return err
		}
		if kind := vitals.Kind(name); kind.Valid() {
			r.Kind = kind
			l.kinds = newer(l.kinds, len(vitals.Kinds), slices.Index(vitals.Kinds, kind), r)
			return nil
		}
		for place, p := range vitals.Parameters {
			switch name {
			case p.Column:
				l.shared = newer(l.shared, len(vitals.Parameters), place, r)
			case vouchedFor + p.Column:
				l.vouched = newer(l.vouched, len(vitals.Parameters), place, r)
			}
		}
		return nil
	})
}

var errDamaged = errors.New("a latest reading is damaged")

// readLatest reads one reading, nil for null.
func readLatest(dec *jsontext.Decoder) (*vitals.Reading, error) {
	if dec.PeekKind() == 'n' {
		return nil, dec.SkipValue()
	}
	r := &vitals.Reading{}
	err := validate.Read(dec, func(name string) error {
		if kind := dec.PeekKind(); kind != '0' && kind != '"' {
			return dec.SkipValue()
		}
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '"' {
			return takeWord(r, name, token.String())
		}
		value, err := token.Float()
		for _, p := range vitals.Parameters {
			if p.Column == name {
				*r.Slot(p) = &value
			}
		}
		return err
	})
	if err == nil && r.MeasuredAt.IsZero() {
		err = errDamaged
	}
	return r, err
}

func takeWord(r *vitals.Reading, name, word string) (err error) {
	if name == "measured_at" {
		r.MeasuredAt, err = time.Parse(time.RFC3339, word)
		return err
	}
	for _, m := range vitals.Marks {
		if m.Name == name {
			r.Say(m, word)
		}
	}
	return nil
}
