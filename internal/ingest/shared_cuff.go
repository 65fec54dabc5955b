package ingest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Two blood pressures from one cuff look like two people's if they are measured within sharedCuffWithin and differ by more than both.
// Source: docs/decisions/alerts.md, "Two people on one cuff".
const (
	sharedCuffWithin              = 30 * time.Minute
	sharedCuffMmHg, sharedCuffBPM = 30, 15
)

// looksLikeOtherPerson reports whether two readings of one cuff look like two people's; no device, no cuff.
func looksLikeOtherPerson(a, b vitals.Reading) bool {
	isSameCuff := a.DeviceID != "" && a.DeviceID == b.DeviceID && a.Kind == vitals.BloodPressure && b.Kind == a.Kind
	if !isSameCuff || a.MeasuredAt.Sub(b.MeasuredAt).Abs() > sharedCuffWithin {
		return false
	}
	differ := func(p *vitals.Parameter, by float64) bool {
		one, other := a.Value(p), b.Value(p)
		return one != nil && other != nil && max(*one-*other, *other-*one) > by
	}
	return differ(vitals.Systolic, sharedCuffMmHg) && differ(vitals.Pulse, sharedCuffBPM)
}

// otherPersonTimes returns the times of the readings that look like another person's; none for a reading
// that a clinician confirmed.
func (o Observation) otherPersonTimes(others []Observation) (at []time.Time) {
	if o.Review == Confirmed {
		return nil
	}
	for _, other := range others {
		if other.ID != o.ID && looksLikeOtherPerson(o.Reading, other.Reading) {
			at = append(at, other.Reading.MeasuredAt)
		}
	}
	return at
}

// loadSharedCuff reads the blood pressures within an hour of o, and the alerts about two people on
// one cuff. It queries nothing if the latest one is older.
func loadSharedCuff(tx core.App, s *SurroundingReadings, latest triage.Latest, o Observation) error {
	at := o.Reading.MeasuredAt
	if o.Reading.Kind != vitals.BloodPressure || o.Reading.Value(vitals.Systolic) == nil {
		return nil
	}
	if value, newest := latest.Value(vitals.Systolic); value == nil || at.Sub(newest) > sharedCuffWithin {
		return nil
	}
	records, err := collections.ObservationsBetween(tx, o.PatientID, o.Reading.Kind, at.Add(-2*sharedCuffWithin), at.Add(2*sharedCuffWithin))
	if err != nil {
		return err
	}
	ids := []string{o.ID}
	for _, record := range records {
		if other := ObservationFromRecord(record); other.ID != o.ID {
			s.Around, ids = append(s.Around, other), append(ids, other.ID)
		}
	}
	if len(o.otherPersonTimes(s.Around)) == 0 {
		return nil
	}
	raised, err := collections.AlertsOfObservations(tx, ids...)
	for _, list := range raised {
		for _, alert := range list {
			if alert.Type() == alerts.TypeSuspectReading && alert.ResolutionReason() != alerts.ReasonRetracted {
				s.Questions = append(s.Questions, alert)
			}
		}
	}
	return err
}

// startsSharedCuffAlert returns the earlier reading that looks like another person's. isFirst: no
// reading in the half hour before has such an earlier one. list is in order of measurement.
func startsSharedCuffAlert(list []Observation, index int) (earlier Observation, isFirst bool) {
	apartFrom := func(of int) int {
		for i := of - 1; i >= 0; i-- {
			if list[i].Review != Confirmed && list[of].Review != Confirmed && looksLikeOtherPerson(list[of].Reading, list[i].Reading) {
				return i
			}
		}
		return -1
	}
	found := apartFrom(index)
	if found < 0 {
		return earlier, false
	}
	for i := index - 1; i >= 0 && list[index].Reading.MeasuredAt.Sub(list[i].Reading.MeasuredAt) <= sharedCuffWithin; i-- {
		if apartFrom(i) >= 0 {
			return earlier, false
		}
	}
	return list[found], true
}

// sharedCuffQuestion drafts the alert that o raises, about itself or a later reading. replaced are
// the active alerts about later readings that are no longer the first of their half hour.
func (s SurroundingReadings) sharedCuffQuestion(o Observation, late bool) (draft alerts.Draft, replaced []*collections.Alert, asks bool) {
	if len(o.otherPersonTimes(s.Around)) == 0 {
		return draft, nil, false // it changes nothing about the others
	}
	list := append(slices.Clip(s.Around), o)
	slices.SortStableFunc(list, func(a, b Observation) int { return a.Reading.MeasuredAt.Compare(b.Reading.MeasuredAt) })
	own := slices.IndexFunc(list, func(other Observation) bool { return other.ID == o.ID })
	var first, second Observation
	asking := map[string]bool{} // by id
	for i := range list {
		earlier, isAsking := startsSharedCuffAlert(list, i)
		asking[list[i].ID] = isAsking
		if isAsking && i >= own && !asks {
			first, second, asks = earlier, list[i], true
		}
	}
	for _, question := range s.Questions {
		isOpen, after := alerts.Status(question.Status()) == alerts.StatusActive, question.MeasuredAt().Sub(second.Reading.MeasuredAt)
		if asks && after.Abs() <= sharedCuffWithin && (after <= 0 || !isOpen) {
			asks = false // a person was prompted
		}
		if isOpen && question.MeasuredAt().After(o.Reading.MeasuredAt) && !asking[question.ObservationID()] {
			replaced = append(replaced, question)
		}
	}
	if !asks {
		return draft, replaced, false
	}
	systolic, usual := *second.Reading.Value(vitals.Systolic), *first.Reading.Value(vitals.Systolic)
	bound := usual + sharedCuffMmHg
	if systolic < usual {
		bound = usual - sharedCuffMmHg
	}
	finding := alerts.Finding{
		Type: alerts.TypeSuspectReading, Level: alerts.Warning, Parameter: vitals.Systolic.Name, Value: systolic, Threshold: bound,
		Message: fmt.Sprintf("Did two people use this cuff? %s and %s were measured within 30 minutes. Neither ends an alert of the other. "+
			"Confirm this reading, or mark the one that is not the patient's as entered in error.", cuffText(first.Reading), cuffText(second.Reading)),
	}
	if late {
		finding.AddMeasuredAt(second.Reading.MeasuredAt)
	}
	return alertDraft(second, finding, false), replaced, true
}

func cuffText(r vitals.Reading) string {
	return fmt.Sprintf("Systolic %s %s with pulse %s %s", vitals.FormatNumber(*r.Value(vitals.Systolic)), vitals.Systolic.Range.Unit,
		vitals.FormatNumber(*r.Value(vitals.Pulse)), vitals.Pulse.Range.Unit)
}

// sharedCuffQuestions returns the open alerts that only the retracted reading justified.
func sharedCuffQuestions(tx core.App, retracted Observation) (ended []*collections.Alert, err error) {
	if retracted.Reading.Kind != vitals.BloodPressure {
		return nil, nil
	}
	open, err := collections.OpenAlertsOf(tx, retracted.PatientID, alerts.TypeSuspectReading)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	at := retracted.Reading.MeasuredAt
	records, err := collections.ObservationsBetween(tx, retracted.PatientID, vitals.BloodPressure, at.Add(-2*sharedCuffWithin), at.Add(2*sharedCuffWithin))
	if err != nil {
		return nil, err
	}
	var others []Observation
	for _, record := range records {
		if o := ObservationFromRecord(record); o.ID != retracted.ID {
			others = append(others, o)
		}
	}
	for _, alert := range open {
		i := slices.IndexFunc(others, func(o Observation) bool { return o.ID == alert.ObservationID() })
		if i >= 0 && looksLikeOtherPerson(others[i].Reading, retracted.Reading) && len(others[i].otherPersonTimes(others)) == 0 {
			ended = append(ended, alert)
		}
	}
	return ended, nil
}

// confirmSharedCuff marks a counted reading as the patient's and ends the question about its cuff; without one it is an invalid_state fault.
// The time of such a reading is not in question: one that is given is a fault.
func (rs *ReadingStore) confirmSharedCuff(tx core.App, o Observation, at time.Time, by audit.Actor, now time.Time) (Observation, error) {
	open, err := collections.OpenAlertsOf(tx, o.PatientID, alerts.TypeSuspectReading)
	if err != nil {
		return o, err
	}
	if !slices.ContainsFunc(open, func(a *collections.Alert) bool { return a.ObservationID() == o.ID }) {
		return o, fault.State("invalid_state", "This reading is not suspect.")
	}
	if !at.IsZero() {
		return o, fault.Field("measured_at", "The time of this reading is not in doubt. Leave it out, or mark the reading as entered in error and enter it again.")
	}
	o.Review, o.ConfirmedBy, o.ConfirmedAt, o.UpdatedAt = Confirmed, alerts.ActorName(by), now, now
	if err := storeReview(tx, o, now); err != nil {
		return o, err
	}
	b, err := newWriteBatch(tx)
	if err != nil {
		return o, err
	}
	if err := b.trail.Add(audit.Entry{
		Event: audit.ObservationConfirm, Actor: by, ResourceType: audit.ResourceObservation, ResourceID: o.ID, PatientID: o.PatientID, Reason: o.confirmNotes,
	}, now); err != nil {
		return o, err
	}
	if err := (readingToEvaluate{observation: o, by: by}).resolveSuspectAlert(tx, b, now); err != nil {
		return o, err
	}
	if err := b.store(tx); err != nil {
		return o, err
	}
	_, err = triage.Rescore(tx, o.PatientID, now)
	return o, err
}
