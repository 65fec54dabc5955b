package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A suspect value is assessed against earlier values, so one out of order can change which later
// ones are suspect. Source: docs/decisions/observations.md, "Suspect reading".

// judgeInOrder returns the readings with the review that each would have in order of measurement.
// Those before from, decided by a person, or with a doubtful time keep their review. It is pure.
func (rs *ReadingStore) judgeInOrder(list []Observation, from time.Time) []Observation {
	judged := slices.Clone(list)
	for i := range judged {
		o := &judged[i]
		isPersons := o.Review == Confirmed && o.ConfirmedBy != alerts.System
		if isPersons || o.SuspectReason == ReasonDeviceClock || o.Reading.MeasuredAt.Before(from) {
			continue
		}
		o.Review, o.SuspectReason, o.ConfirmedBy, o.suspicionDecided = Accepted, "", "", false
		d := rs.assessSuspicion(*o, reviewedValues(judged[:i]))
		o.suspicionDecided = true
		switch {
		case d.isSuspect():
			o.Review, o.SuspectReason = Suspect, d.reason()
		case d.needsCorroboration():
			o.Review, o.SuspectReason, o.ConfirmedBy = Confirmed, d.reason(), alerts.System
		}
		for k := range judged[:i] {
			if slices.Contains(d.corroborates, judged[k].ID) {
				judged[k].Review, judged[k].ConfirmedBy = Confirmed, alerts.System
			}
		}
	}
	return judged
}

// reviewedValues returns the values of readings by their review.
func reviewedValues(list []Observation) (p triage.PatientSnapshot) {
	for _, o := range list {
		for _, v := range baselineValues(o.Reading) {
			v.Confirmed, v.Origin = o.Review == Confirmed, o.Origin
			if o.Review == Confirmed && o.ConfirmedBy != alerts.System {
				v.Origin = vitals.OriginStaff
			}
			if o.Review == Suspect {
				p.Suspects = append(p.Suspects, triage.StoredSuspect{BaselineValue: v, ID: o.ID, Reason: o.SuspectReason})
			} else {
				p.Baseline = append(p.Baseline, v)
			}
		}
	}
	return p
}

// hasLaterReviewed reports whether the review of a stored later reading may depend on a new one. It queries only for a late one.
func (rs *ReadingStore) hasLaterReviewed(tx core.App, o Observation, p triage.PatientSnapshot, now time.Time) (bool, error) {
	parameter, at := o.Reading.Kind.Definition().SuspectParameter, o.Reading.MeasuredAt
	if parameter == nil || o.mergedPart != nil || o.Reading.Value(parameter) == nil {
		return false, nil
	}
	if newest, newestAt := p.Latest.Value(parameter); newest != nil && newestAt.After(at) {
		return rs.mayBeFar(tx, o)
	}
	if now.Sub(at) <= parameter.Suspect.Within {
		return slices.ContainsFunc(p.Suspects, func(d triage.StoredSuspect) bool { return d.Parameter == parameter && d.MeasuredAt.After(at) }), nil
	}
	return collections.IsNextSuspect(tx, o.PatientID, string(o.Reading.Kind), o.ID, at)
}

// mayBeFar reports whether any value near a stored reading may be suspect. It is one cheap query,
// because a backfill of years needs it for each reading.
func (rs *ReadingStore) mayBeFar(tx core.App, o Observation) (bool, error) {
	parameter := o.Reading.Kind.Definition().SuspectParameter
	from, until := suspicionWindow(parameter.Suspect, o.Reading.MeasuredAt)
	span, err := collections.SpanOfValues(tx, o.PatientID, o.Reading.Kind, parameter.Column, from, until)
	return span.IsReviewed || rs.rules.Suspect.IsExceeded(span.High, span.Low), err // the tolerance grows with the usual value
}

// suspicionWindow spans the values that a value can make suspect, and those they are compared with.
func suspicionWindow(rule *vitals.SuspectRule, at time.Time) (from, until time.Time) {
	return at.Add(-rule.Within).AddDate(0, 0, -rule.Days), at.AddDate(0, 0, rule.Days).Add(rule.Within)
}

// reviewsAround returns the later readings and their references: as stored, and as assessed in
// order with and without o. It reads on until no review changes, because each can change others.
func (rs *ReadingStore) reviewsAround(tx core.App, o Observation) (stored, with, without []Observation, err error) {
	rule, at := o.Reading.Kind.Definition().SuspectParameter.Suspect, o.Reading.MeasuredAt
	from := at.Add(-rule.Within)
	start, until := suspicionWindow(rule, at)
	for reach := until; !reach.IsZero(); {
		until, reach = reach, time.Time{}
		records, err := collections.ReviewedBetween(tx, o.PatientID, o.Reading.Kind, start, until)
		if err != nil {
			return nil, nil, nil, err
		}
		stored = nil
		for _, record := range records {
			stored = append(stored, ObservationFromRecord(record))
		}
		others := slices.DeleteFunc(slices.Clone(stored), func(other Observation) bool { return other.ID == o.ID })
		with, without = rs.judgeInOrder(stored, from), rs.judgeInOrder(others, from)
		for i := range with {
			if with[i].ID == o.ID {
				without = slices.Insert(without, i, o)
			} else if !with[i].isReviewedAs(without[i]) {
				if _, further := suspicionWindow(rule, with[i].Reading.MeasuredAt); further.After(until) {
					reach = further
				}
			}
		}
	}
	return stored, with, without, nil
}

func (o Observation) isReviewedAs(other Observation) bool {
	return o.Review == other.Review && o.SuspectReason == other.SuspectReason
}

// reviewInOrder decides whether a reading that arrived before later ones is suspect, and reviews these again. decided: it wrote all effects.
func (rs *ReadingStore) reviewInOrder(
	tx core.App, b *writeBatch, o Observation, patient readingPatient, by audit.Actor, now time.Time,
) (outcome Outcome, decided bool, err error) {
	stored, with, without, err := rs.reviewsAround(tx, o)
	if err != nil {
		return outcome, true, err
	}
	own := with[slices.IndexFunc(with, func(w Observation) bool { return w.ID == o.ID })]
	o.Review, o.SuspectReason, o.ConfirmedBy, o.suspicionDecided = own.Review, own.SuspectReason, own.ConfirmedBy, true
	var ended, accepted []Observation
	for i, w := range with {
		if w.ID == o.ID || w.isReviewedAs(stored[i]) || !without[i].isReviewedAs(stored[i]) {
			continue // as it was, or for another reason
		}
		switch {
		case w.Review == Suspect && stored[i].Review != Suspect:
			ended = append(ended, w)
		case w.Review != Suspect && stored[i].Review == Suspect:
			accepted = append(accepted, w)
		default:
			w.ConfirmedAt = time.Time{}
			if w.Review == Confirmed {
				w.ConfirmedAt = now
			}
			err = storeReview(tx, w, now)
		}
		if err != nil {
			return outcome, true, err
		}
	}
	if o.Review == Accepted && len(ended)+len(accepted) == 0 {
		return outcome, false, nil
	}
	return rs.applyReviews(tx, b, o, ended, accepted, patient, by, now)
}

// applyReviews stores a new reading with its review, and the effects of the reviews that it changed.
func (rs *ReadingStore) applyReviews(
	tx core.App, b *writeBatch, o Observation, ended, accepted []Observation, patient readingPatient, by audit.Actor, now time.Time,
) (outcome Outcome, decided bool, err error) {
	if o.Review != Accepted {
		if o.Review == Suspect {
			o.FHIRStatus, o.FHIRVersion, o.TransformedAt = "", 0, time.Time{}
		} else {
			o.ConfirmedAt = now
		}
		if err := storeReview(tx, o, now); err != nil {
			return outcome, true, err
		}
	}
	for _, other := range ended {
		if err := rs.suspend(tx, b, other, by, now); err != nil {
			return outcome, true, err
		}
	}
	patient.snapshot = nil
	var readings []readingToEvaluate
	for _, other := range accepted {
		r, err := rs.markReviewed(tx, other, patient, systemActor(by), now)
		if err != nil {
			return outcome, true, err
		}
		readings = append(readings, r)
	}
	snapshot, err := patient.snapshotFor(tx, o.PatientID, o.Reading, now)
	if err == nil && o.Review == Suspect {
		outcome, err = rs.applySuspect(tx, b, o, suspicion{}, false, snapshot, patient, by, now)
	}
	if err != nil {
		return outcome, true, err
	}
	if o.Review != Suspect {
		readings = append(readings, readingToEvaluate{observation: o, patient: patient, by: by})
	}
	if len(readings) > 0 {
		evaluated, err := rs.evaluateConfirmed(tx, b, readings, o.ID, now)
		if err != nil {
			return outcome, true, err
		}
		if o.Review != Suspect {
			outcome = evaluated
		}
	}
	return outcome, true, rs.reconcileSuspectAlerts(tx, b, readingToEvaluate{o, patient, by}, snapshot, now)
}

// suspend marks a counted reading as suspect and reverses its effects like a retraction. Alerts
// that a person handled and the escalation stay: a clinician was notified and closes it.
func (rs *ReadingStore) suspend(tx core.App, b *writeBatch, o Observation, by audit.Actor, now time.Time) error {
	if err := b.queue.Store(tx); err != nil {
		return err
	}
	w := &retraction{readings: rs, tx: tx, observation: o, by: systemActor(by), now: now, isSuspension: true}
	err := b.appendDirectly(tx, func() error {
		for _, step := range []func() error{w.markSuspect, w.correctAlerts, w.recheckSlowChanges, w.rerank} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	total := dayTotal{o.Reading.MeasuredAt.In(rs.rules.PracticeZone).Format(time.DateOnly), string(o.Reading.Kind), collections.StatusFinal}
	b.totals[total]--
	total.status = collections.StatusSuspect
	b.totals[total]++
	b.suspended = append(b.suspended, w)
	return nil
}

// markSuspect stores the review, removes an unattempted delivery and makes an EMR copy preliminary.
func (r *retraction) markSuspect() error {
	o := r.observation
	o.ConfirmedAt, o.FHIRVersion = time.Time{}, o.FHIRVersion+1
	if err := storeReview(r.tx, o, r.now); err != nil {
		return err
	}
	if err := emr.Withhold(r.tx, o.ID, r.now); err != nil {
		return err
	}
	return audit.Append(r.tx, audit.Entry{
		Event: audit.ObservationUpdate, Actor: r.by, ResourceType: audit.ResourceObservation, ResourceID: o.ID, PatientID: o.PatientID,
		Changes: audit.Changes{"review_state": {New: string(Suspect)}},
	}, r.now)
}
