package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Why a reading is, or was, suspect.
const (
	ReasonFarFromUsual = "far_from_usual"
	ReasonWrongUnit    = "wrong_unit" // not in doubt, had it been sent in another unit
)

// doubt is what a reading comes to in the light of the patient's other ones: whether it lies far from them, whether it may be judged
// all the same, and which doubted ones it bears out.
type doubt struct {
	alerts.Doubt
	far, believed bool
	bears         []string // observations
}

func (d doubt) suspect() bool { return d.far && !d.believed && len(d.bears) == 0 }

func (d doubt) reason() string {
	if d.Unit != nil {
		return ReasonWrongUnit
	}
	return ReasonFarFromUsual
}

// doubt says whether a reading that came may be somebody else's. What a person has confirmed is not doubted.
// Source: docs/decisions/observations.md, "Suspect reading".
func (e *Evaluator) doubt(o Observation, p triage.Picture) (d doubt) {
	parameter := o.Reading.Kind.Definition().Doubted
	value := o.Reading.Value(parameter)
	if value == nil || o.addition != nil || o.undoubted || o.Review != Accepted {
		return d
	}
	d.Of, d.Value = parameter, *value
	d.compare(usualOf(p.Weighings, d.Doubt, o.Reading.MeasuredAt), o.Origin, e.rules)
	holds := !d.far || d.believed // of itself, or because one as reliable bears it out
	if !holds && d.Unit != nil {
		return d // the next one from a device in the wrong unit is like it, and says no more
	}
	for _, other := range p.Doubted {
		if other.Reason != ReasonFarFromUsual || other.Of != parameter || other.MeasuredAt.Sub(o.Reading.MeasuredAt).Abs() > parameter.Doubt.Within ||
			!parameter.Doubt.Close(other.Value, d.Value) {
			continue
		}
		holds = holds || other.Origin.Settles(o.Origin)
		if o.Origin.Settles(other.Origin) {
			d.bears = append(d.bears, other.ID)
		}
	}
	if !holds {
		d.bears = nil
	}
	return d
}

// Doubts reports whether a reading would be in doubt, were it stored.
func (e *Evaluator) Doubts(r vitals.Reading, origin vitals.Origin, p triage.Picture) bool {
	return r.Kind.Definition().Doubted != nil && e.doubt(Observation{Reading: r, Origin: origin, Review: Accepted}, p).suspect()
}

// usualOf are the last values before a moment among those that count, the latest first.
func usualOf(weighings []alerts.Weighing, d alerts.Doubt, at time.Time) (usual []alerts.Weighing) {
	since := at.AddDate(0, 0, -d.Of.Doubt.Days)
	for _, w := range weighings {
		if w.Of == d.Of && w.MeasuredAt.Before(at) && !w.MeasuredAt.Before(since) {
			usual = append(usual, w)
		}
	}
	slices.SortStableFunc(usual, func(a, b alerts.Weighing) int { return b.MeasuredAt.Compare(a.MeasuredAt) })
	return usual[:min(len(usual), d.Of.Doubt.Among)]
}

// compare holds the value against the usual ones. One that is like a confirmed one of them is believed: that weight has been vouched for,
// by something as reliable.
func (d *doubt) compare(usual []alerts.Weighing, origin vitals.Origin, rules Rules) {
	if len(usual) < d.Of.Doubt.AtLeast {
		return
	}
	values := make([]float64, len(usual))
	for i, w := range usual {
		values[i] = w.Value
		d.believed = d.believed || w.Confirmed && w.Origin.Settles(origin) && d.Of.Doubt.Close(w.Value, d.Value)
	}
	d.Usual, d.Among = vitals.Usual(values), len(values)
	if d.far = rules.Suspect.Exceeded(d.Value, d.Usual); !d.far {
		return
	}
	d.Bound = d.Usual + rules.Suspect.Of(d.Usual)
	if d.Value < d.Usual {
		d.Bound = d.Usual - rules.Suspect.Of(d.Usual)
	}
	d.Unit, d.Meant = d.Of.Mistook(d.Value, d.Usual, rules.Suspect)
}

// decideDoubt stores what a doubt comes to, if there is any: a suspect reading counts for nothing, or a second one like it bears it out, and
// both are judged in the order in which they were measured.
func (e *Evaluator) decideDoubt(
	tx core.App, b *batch, o Observation, picture triage.Picture, patient subject, by audit.Actor, now time.Time,
) (outcome Outcome, decided bool, err error) {
	d := e.doubt(o, picture)
	if d.suspect() {
		outcome, err = e.storeSuspect(tx, b, o, d, picture, patient, by, now)
		return outcome, true, err
	}
	if len(d.bears) == 0 {
		return Outcome{}, false, nil
	}
	o.undoubted = true
	if d.far && !d.believed { // the second one, which would have been doubted by itself
		o.Review, o.SuspectReason, o.ConfirmedBy, o.ConfirmedAt = Confirmed, d.reason(), alerts.System, now
		if err := storeReview(tx, o, now); err != nil {
			return Outcome{}, true, err
		}
	}
	readings := []confirmed{{observation: o, patient: patient, by: by}}
	for _, id := range d.bears {
		borne, err := Find(tx, id)
		if err != nil {
			return Outcome{}, true, err
		}
		believed, err := e.believe(tx, borne, alerts.System, patient, underRequest(by), now)
		if err != nil {
			return Outcome{}, true, err
		}
		readings = append(readings, believed)
	}
	outcome, err = e.judgeConfirmed(tx, b, readings, o.ID, now)
	return outcome, true, err
}

// storeSuspect stores that a reading is doubted, and asks the care team once for each run of such readings.
func (e *Evaluator) storeSuspect(
	tx core.App, b *batch, o Observation, d doubt, picture triage.Picture, patient subject, by audit.Actor, now time.Time,
) (Outcome, error) {
	o.Review, o.SuspectReason = Suspect, d.reason()
	o.FHIRStatus, o.FHIRVersion, o.TransformedAt = "", 0, time.Time{}
	if err := storeReview(tx, o, now); err != nil {
		return Outcome{}, err
	}
	asked, err := collections.AskedInRun(tx, o.ID, alerts.TypeSuspectReading)
	if err != nil {
		return Outcome{}, err
	}
	effects := e.doubted(o, picture, d, !asked, now)
	effects.CountDay = o.Reading.MeasuredAt.In(e.rules.PracticeZone).Format(time.DateOnly)
	if len(effects.Alerts) > 0 {
		effects.PatientLabel = patient.holder.label(o.PatientID)
	}
	outcome, err := apply(tx, b, effects, by, now)
	if err == nil {
		patient.learn(effects, outcome, now)
	}
	return outcome, err
}

// doubted decides what follows from a reading that is stored and not believed: the question, and that its device is not silent.
func (e *Evaluator) doubted(o Observation, picture triage.Picture, d doubt, ask bool, now time.Time) Effects {
	effects := Effects{Observation: o}
	for _, alert := range picture.Open {
		if alert.Type == alerts.TypeNoReading24h && alert.DeviceID == o.Reading.DeviceID { // the patient's own reading is still missing
			effects.Progress = append(effects.Progress, alerts.Progress{Alert: alert, NormalReadings: alert.NormalReadings, Resolved: true})
		}
	}
	if ask {
		effects.Alerts = append(effects.Alerts, draft(o, d.Ask(o.Reading.MeasuredAt, e.rules.late(o.Reading.MeasuredAt, now)), false))
	}
	effects.After = effects.after(picture, stored(now))
	effects.After.Latest = picture.Latest
	effects.Place = effects.After.Place(now)
	return effects
}
