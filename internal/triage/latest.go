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

// Latest is the latest reading of each kind, by time of measurement, limited to parameters with thresholds. For a parameter shared by
// several kinds it also keeps the latest value; [Latest.Public] omits that. It is stored in the contract's latest_vitals form and never
// changed in place.
type Latest struct {
	kinds  []*vitals.Reading // indexed by kind
	shared []*vitals.Reading // indexed by parameter
	// verified, indexed by parameter, is the last value from a device or staff, set only if the latest one was typed by the patient;
	// without a value if there is none.
	verified []*vitals.Reading
}

// ParseLatest reads the stored form; an empty text has no readings.
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

// With returns the latest readings after another reading arrived, which may be older than the stored ones.
func (l Latest) With(r vitals.Reading, origin vitals.Origin) Latest {
	typed := !origin.CanResolve(vitals.OriginDevice)
	last := vitals.Reading{Kind: r.Kind, MeasuredAt: r.MeasuredAt}
	for _, p := range r.Kind.Definition().All {
		if p.Group == "" {
			continue
		}
		value := r.Value(p)
		*last.ValuePtr(p) = value
		if value != nil && (typed || l.verified != nil) {
			l.verified = l.verifiedAfter(p, *value, r.MeasuredAt, typed)
		}
		if p.Shared() && value != nil {
			alone := vitals.Reading{MeasuredAt: r.MeasuredAt}
			*alone.ValuePtr(p) = value
			l.shared = withNewer(l.shared, len(vitals.Parameters), p.Index(), &alone)
		}
	}
	for _, m := range r.Kind.Definition().Qualifiers {
		if m.Latest {
			last.SetQualifier(m, r.Qualifier(m))
		}
	}
	l.kinds = withNewer(l.kinds, len(vitals.Kinds), slices.Index(vitals.Kinds, r.Kind), &last)
	return l
}

// withNewer returns a list with the reading at its index, unless the one there is later.
func withNewer(list []*vitals.Reading, places, at int, r *vitals.Reading) []*vitals.Reading {
	if list != nil && list[at] != nil && r.MeasuredAt.Before(list[at].MeasuredAt) {
		return list
	}
	changed := make([]*vitals.Reading, places)
	copy(changed, list)
	changed[at] = r
	return changed
}

// Public returns the latest readings as the contract defines them.
func (l Latest) Public() Latest {
	l.shared, l.verified = nil, nil
	return l
}

// MeasuredAt is the time of the newest reading of any kind; zero if there is none.
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

// Value returns the latest value of a parameter with thresholds and its time; nil if there is none.
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

// mealAt returns the meal marker of the latest reading of a parameter if it was measured at the given time, otherwise "".
func (l Latest) mealAt(p *vitals.Parameter, at time.Time) string {
	for _, r := range l.kinds {
		if r != nil && r.Kind == p.Kinds[0] && r.MeasuredAt.Equal(at) {
			return r.Qualifier(vitals.MealContext)
		}
	}
	return ""
}

// parameters appends the values that count for the score. A parameter watched for changes counts by its gain within the rule's window, and
// only if it was measured after since: earlier baselines are not loaded.
func (l Latest) parameters(list []measuredValue, t alerts.Thresholds, baseline []alerts.BaselineValue, since time.Time) []measuredValue {
	for _, p := range vitals.ThresholdParameters {
		value, at := l.Value(p)
		if value == nil {
			continue
		}
		if p.Change == nil {
			judged := boundedValue(p, *value, at, t)
			judged.limits = judged.limits.ForMeal(l.mealAt(p, at))
			list = append(list, judged)
			continue
		}
		if at.Before(since) {
			continue
		}
		if gain, _, found := alerts.GainAndLoss(p, *value, at, t.Change(p), baseline); found {
			list = append(list, changeValue(p, gain, at, t))
		}
	}
	return list
}

// encode returns the stored form.
func (l Latest) encode() ([]byte, error) { return json.Marshal(l) }

// MarshalJSONTo writes the stored form. It runs for every reading.
func (l Latest) MarshalJSONTo(enc *jsontext.Encoder) error {
	w := writer{enc: enc}
	w.token(jsontext.BeginObject)
	for _, r := range l.kinds {
		if r != nil {
			d := r.Kind.Definition()
			w.reading(string(d.Kind), r, d.All, d.Qualifiers)
		}
	}
	for place, r := range l.shared {
		if r != nil {
			w.reading(vitals.Parameters[place].Column, r, vitals.Parameters[place:place+1], nil)
		}
	}
	for place, r := range l.verified {
		if r != nil {
			w.reading(verifiedPrefix+vitals.Parameters[place].Column, r, vitals.Parameters[place:place+1], nil)
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

func (w *writer) reading(name string, r *vitals.Reading, parameters []*vitals.Parameter, marks []*vitals.Qualifier) {
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
		if !m.Latest || m.Internal && r.Qualifier(m) == "" {
			continue
		}
		w.token(jsontext.String(m.Name))
		if word := r.Qualifier(m); word != "" {
			w.token(jsontext.String(word))
		} else {
			w.token(jsontext.Null)
		}
	}
	w.token(jsontext.String("measured_at"))
	w.token(jsontext.String(validate.FormatInstant(r.MeasuredAt)))
	w.token(jsontext.EndObject)
}

// UnmarshalJSONFrom reads the stored form and ignores unknown members.
func (l *Latest) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = Latest{}
	return validate.ReadObject(dec, func(name string) error {
		r, err := readLatest(dec)
		if err != nil || r == nil {
			return err
		}
		if kind := vitals.Kind(name); kind.Valid() {
			r.Kind = kind
			l.kinds = withNewer(l.kinds, len(vitals.Kinds), slices.Index(vitals.Kinds, kind), r)
			return nil
		}
		for place, p := range vitals.Parameters {
			switch name {
			case p.Column:
				l.shared = withNewer(l.shared, len(vitals.Parameters), place, r)
			case verifiedPrefix + p.Column:
				l.verified = withNewer(l.verified, len(vitals.Parameters), place, r)
			}
		}
		return nil
	})
}

var errDamaged = errors.New("a latest reading is damaged")

// readLatest reads one reading; nil for null.
func readLatest(dec *jsontext.Decoder) (*vitals.Reading, error) {
	if dec.PeekKind() == 'n' {
		return nil, dec.SkipValue()
	}
	r := &vitals.Reading{}
	err := validate.ReadObject(dec, func(name string) error {
		if kind := dec.PeekKind(); kind != '0' && kind != '"' {
			return dec.SkipValue()
		}
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '"' {
			return setText(r, name, token.String())
		}
		value, err := token.Float()
		for _, p := range vitals.Parameters {
			if p.Column == name {
				*r.ValuePtr(p) = &value
			}
		}
		return err
	})
	if err == nil && r.MeasuredAt.IsZero() {
		err = errDamaged
	}
	return r, err
}

func setText(r *vitals.Reading, name, word string) (err error) {
	if name == "measured_at" {
		r.MeasuredAt, err = time.Parse(time.RFC3339, word)
		return err
	}
	for _, m := range vitals.Qualifiers {
		if m.Name == name {
			r.SetQualifier(m, word)
		}
	}
	return nil
}
