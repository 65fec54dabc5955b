package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
)

// askRest asks about what is left of the run of a suspect reading that is decided: the question that ended with it was the run's. One that
// holds now parts the run in two, so that each may need a question. It reports whether it asked; ranking the patient anew is the caller's.
// Source: docs/decisions/observations.md, "Suspect reading".
func (e *Evaluator) askRest(tx core.App, b *batch, decided Observation, patient holder, by audit.Actor, now time.Time) (asked bool, err error) {
	if decided.Reading.Kind.Definition().Doubted == nil || !patient.Active || patient.DeletedAt != "" {
		return false, nil
	}
	left, err := collections.UnaskedAround(tx, decided.ID, alerts.TypeSuspectReading, ReasonDeviceClock)
	if err != nil {
		return false, err
	}
	for _, id := range left {
		already, err := collections.AskedInRun(tx, id, alerts.TypeSuspectReading)
		if err != nil {
			return asked, err
		}
		if already {
			continue
		}
		if err := e.ask(tx, b, id, patient, by, now); err != nil {
			return asked, err
		}
		asked = true
	}
	return asked, nil
}

// partRun asks about what is left of the run that a reading parts.
func (e *Evaluator) partRun(tx core.App, b *batch, r confirmed, p triage.Picture, now time.Time) error {
	parts, err := mayPart(tx, r.observation, p, now)
	if err != nil || !parts {
		return err
	}
	return e.askRestOf(tx, b, []confirmed{r}, now)
}

// mayPart reports whether a reading that holds may have been measured between suspect ones, whose run it parts then: of the last day they are
// at hand, and what was measured earlier comes late. For any other the database is asked nothing.
func mayPart(tx core.App, o Observation, p triage.Picture, now time.Time) (bool, error) {
	parameter := o.Reading.Kind.Definition().Doubted
	if parameter == nil || o.addition != nil || o.Review != Accepted || o.Reading.Value(parameter) == nil {
		return false, nil
	}
	at := o.Reading.MeasuredAt
	follows := func(d triage.Doubted) bool { return d.Of == parameter && d.MeasuredAt.After(at) }
	if now.Sub(at) <= parameter.Doubt.Within && !slices.ContainsFunc(p.Doubted, follows) {
		return false, nil
	}
	return collections.SuspectFollows(tx, o.PatientID, string(o.Reading.Kind), o.ID, at)
}

// ask raises the question about a stored suspect reading, in the light of what is usual now.
func (e *Evaluator) ask(tx core.App, b *batch, id string, patient holder, by audit.Actor, now time.Time) error {
	o, err := Find(tx, id)
	if err != nil {
		return err
	}
	picture, err := triage.ReadPicture(tx, o.PatientID, &o.Reading, now)
	if err != nil {
		return err
	}
	coming := o
	coming.Review = Accepted // what is doubted already is not doubted anew
	d := e.doubt(coming, picture)
	if d.Of == nil {
		return nil
	}
	question := draft(o, d.Ask(o.Reading.MeasuredAt, e.rules.late(o.Reading.MeasuredAt, now)), false)
	question.Unmeasured = !d.far // there is no bound to tell
	a := application{tx: tx, batch: b, by: by, now: now, effects: Effects{
		Observation: o, PatientLabel: patient.label(o.PatientID), Alerts: []alerts.Draft{question},
	}}
	return a.alert()
}

// askRest asks about the rest of the run, when the withdrawn reading was in doubt.
func (w *withdrawal) askRest() error {
	if w.observation.Review != Suspect {
		return nil
	}
	patient, err := loadHolder(w.tx, w.observation.PatientID)
	if err != nil {
		return err
	}
	b, err := newBatch(w.tx)
	if err != nil {
		return err
	}
	if _, err := w.engine.askRest(w.tx, b, w.observation, patient, w.by, w.now); err != nil {
		return err
	}
	return b.trail.Store()
}

// askRestOf asks about the rest of the runs of readings that are believed now. All of them are stored as such already.
func (e *Evaluator) askRestOf(tx core.App, b *batch, readings []confirmed, now time.Time) error {
	for _, r := range readings {
		asked, err := e.askRest(tx, b, r.observation, r.patient.holder, r.by, now)
		if err != nil {
			return err
		}
		if !asked {
			continue
		}
		r.patient.picture = nil // there is one more alert
		if _, err := triage.Rescore(tx, r.observation.PatientID, now); err != nil {
			return err
		}
	}
	return nil
}
